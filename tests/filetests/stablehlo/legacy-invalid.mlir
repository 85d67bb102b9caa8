// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: broadcast-C: result type is tensor<2x4xf32>, expected tensor<2x3xf32>
func.func @main(%x: tensor<3xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.broadcast %x, sizes = [2] : (tensor<3xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// -----
// CHECK: why: dot-C2: sizes n and m differ
func.func @main(%x: tensor<2x?xf32, ["2", "n"]>, %y: tensor<?xf32, ["m"]>) -> tensor<2xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<2x?xf32, ["2", "n"]>, tensor<?xf32, ["m"]>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: torch_index_select-C1: dim 2 and batch_dims 0 do not fit tensor<4x5xf32> and tensor<2xi32>
func.func @main(%x: tensor<4x5xf32>, %i: tensor<2xi32>) -> tensor<2x5xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 2 : i64, batch_dims = 0 : i64}> : (tensor<4x5xf32>, tensor<2xi32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}
// -----
// CHECK: why: dot-C4: products of f32 have no place in a result of i1
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> tensor<2x2xi1> {
  %0 = stablehlo.dot %x, %y : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xi1>
  return %0 : tensor<2x2xi1>
}
