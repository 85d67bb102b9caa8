// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: argument 0: the sharding has 1 dimensions, and the tensor has 2
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: there is no mesh @other
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@other, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: there is no axis "c" in the mesh <["a"=2, "b"=4]>
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: the axis "a" is used twice
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"a"}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: the axes "b" and "b":(1)2 overlap
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"b":(1)2}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: the axes "b":(1)2, "b":(2)2 are written as one
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(1)2, "b":(2)2}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: "b":(1)3 does not divide the axis, which has size 4
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(1)3}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: "b":(1)4 is the whole axis, and is written so
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(1)4}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: "b":(0)2 has a pre-size below 1, or a size below 2
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(0)2}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: dimension 0 is closed and not cut, so its priority means nothing
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}p1, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: the replicated axes are not in the order of the mesh
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], replicated={"b", "a"}>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: argument 0: the sharding of a value on one device has no dimensions and no axes
sdy.mesh @mesh = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: the axes ['a', 'a'] do not have names of their own
sdy.mesh @mesh = <["a"=2, "a"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: device ids in plain order are left out
sdy.mesh @mesh = <["a"=2], device_ids=[0, 1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: the device ids [1, 2] are not 0 to 1 in some order
sdy.mesh @mesh = <["a"=2], device_ids=[1, 2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: the axes have 2 places, and there are 1 devices
sdy.mesh @mesh = <["a"=2], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: the meshes of a module have [2, 4] devices, and must have the same number
sdy.mesh @mesh = <["a"=2]>
sdy.mesh @other = <["a"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: Redefinition of symbol "mesh"
sdy.mesh @mesh = <["a"=2]>
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: `?` stands last in a dimension
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?, "b"}, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: expected a priority as in `p1`, got 'p01'
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}p01, {}]>}) -> tensor<8x8xf32> {
  return %x : tensor<8x8xf32>
}
// -----
// CHECK: why: operand 0: a piece is tensor<4x8xf32>, and the body has tensor<8x8xf32>
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%y: tensor<8x8xf32>) {
    sdy.return %y : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// -----
// CHECK: why: result 0: a piece is tensor<8x8xf32>, and the body has tensor<4x8xf32>
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"a"} (%y: tensor<4x8xf32>) {
    sdy.return %y : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// -----
// CHECK: why: there is no axis "c" in the mesh <["a"=2, "b"=4]>
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"c"} (%y: tensor<8x8xf32>) {
    sdy.return %y : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// -----
// CHECK: why: operand 0: the manual axes of {"b", "a"} do not come first
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"b", "a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%y: tensor<4x8xf32>) {
    sdy.return %y : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// -----
// CHECK: why: manual_computation-C2: there are 1 results, 2 shardings, and 1 inside of the body
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{"a"}, {}]>] manual_axes={"a"} (%y: tensor<4x8xf32>) {
    sdy.return %y : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// -----
// CHECK: why: result 0: the axis "a" is manual in a computation around it
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%y: tensor<4x8xf32>) {
    %1 = sdy.sharding_constraint %y <@mesh, [{"a"}, {}]> : tensor<4x8xf32>
    sdy.return %1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// -----
// CHECK: why: sdy.sharding has 2 shardings for 1 results
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
// -----
// CHECK: why: sdy.sharding of an op is a #sdy.sharding_per_value
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding<@mesh, [{}]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
