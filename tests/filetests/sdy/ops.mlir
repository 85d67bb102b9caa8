// RUN: gcomp opt %s | filecheck %s

// CHECK: sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @mesh = <["a"=2, "b"=4]>
// CHECK-NEXT: sdy.mesh @ordered = <["x"=4, "y"=2], device_ids=[7, 1, 2, 3, 4, 5, 6, 0]>
sdy.mesh @ordered = <["x"=4, "y"=2], device_ids=[7, 1, 2, 3, 4, 5, 6, 0]>
// CHECK-NEXT: sdy.mesh @placeholder = <[]>
sdy.mesh @placeholder = <[]>
// CHECK-NEXT: sdy.mesh @one = <[], device_ids=[3]>
sdy.mesh @one = <[], device_ids=[3]>

// CHECK-NEXT: func.func @main(%x: tensor<8x8xf32> {gcomp.name = "x", sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p1, {"b":(1)2}], replicated={"b":(2)2}>})
// CHECK-SAME: -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}p3], unreduced={"a"}>})
func.func @main(%x: tensor<8x8xf32> {gcomp.name = "x", sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p1, {"b":(1)2}], replicated={"b":(2)2}>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}p3], unreduced={"a"}>}) {
  // CHECK-NEXT: %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<8x8xf32>
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<8x8xf32>
  // CHECK-NEXT: %1 = sdy.sharding_constraint %0 <mesh<["x"=2, "y"=4]>, [{"x"}, {?}]> : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <mesh<["x"=2, "y"=4]>, [{"x"}, {?}]> : tensor<8x8xf32>
  // CHECK-NEXT: %2 = sdy.reshard %1 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  %2 = sdy.reshard %1 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  // CHECK-NEXT: sdy.sharding_group %2 group_id=3 : tensor<8x8xf32>
  sdy.sharding_group %2 group_id=3 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// The body has the pieces along the manual axes; a computation inside of it takes the others.
// CHECK-LABEL: func.func private @nested
func.func private @nested(%x: tensor<?x8xf32, ["2*n", "8"]>) -> tensor<?x8xf32, ["2*n", "8"]> {
  // CHECK-NEXT: %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {?}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a"} (%y: tensor<?x8xf32, ["n", "8"]>) {
  // CHECK-NEXT:   %1 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%z: tensor<?x2xf32, ["n", "2"]>) {
  // CHECK-NEXT:     %2 = stablehlo.sine %z : tensor<?x2xf32, ["n", "2"]>
  // CHECK-NEXT:     sdy.return %2 : tensor<?x2xf32, ["n", "2"]>
  // CHECK-NEXT:   } : (tensor<?x8xf32, ["n", "8"]>) -> tensor<?x8xf32, ["n", "8"]>
  // CHECK-NEXT:   sdy.return %1 : tensor<?x8xf32, ["n", "8"]>
  // CHECK-NEXT: } : (tensor<?x8xf32, ["2*n", "8"]>) -> tensor<?x8xf32, ["2*n", "8"]>
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {?}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a"} (%y: tensor<?x8xf32, ["n", "8"]>) {
    %1 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%z: tensor<?x2xf32, ["n", "2"]>) {
      %2 = stablehlo.sine %z : tensor<?x2xf32, ["n", "2"]>
      sdy.return %2 : tensor<?x2xf32, ["n", "2"]>
    } : (tensor<?x8xf32, ["n", "8"]>) -> tensor<?x8xf32, ["n", "8"]>
    sdy.return %1 : tensor<?x8xf32, ["n", "8"]>
  } : (tensor<?x8xf32, ["2*n", "8"]>) -> tensor<?x8xf32, ["2*n", "8"]>
  return %0 : tensor<?x8xf32, ["2*n", "8"]>
}

// CHECK-LABEL: func.func private @empty
func.func private @empty() {
  // CHECK-NEXT: sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
  // CHECK-NEXT:   sdy.return
  // CHECK-NEXT: } : () -> ()
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    sdy.return
  } : () -> ()
  return
}
