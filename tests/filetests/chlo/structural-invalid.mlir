// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: top_k-C2: there are not 5 elements along a dimension of size 4
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x5xf32> {
  %0, %1 = chlo.top_k(%x, k = 5) : tensor<2x4xf32> -> (tensor<2x5xf32>, tensor<2x5xi32>)
  return %0 : tensor<2x5xf32>
}
// -----
// CHECK: why: constant_like-C: result type is tensor<3xi32>, expected tensor<3xf32>
func.func @main(%x: tensor<3xf32>) -> tensor<3xi32> {
  %0 = "chlo.constant_like"(%x) <{value = 1.500000e+00 : f32}> : (tensor<3xf32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}
// -----
// CHECK: why: ragged_dot-I3: group_sizes are not integers
func.func @main(%x: tensor<11x5xf32>, %y: tensor<3x5x7xf32>, %groups: tensor<3xf32>) -> tensor<11x7xf32> {
  %0 = "chlo.ragged_dot"(%x, %y, %groups) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<11x5xf32>, tensor<3x5x7xf32>, tensor<3xf32>) -> tensor<11x7xf32>
  return %0 : tensor<11x7xf32>
}
// -----
// CHECK: why: scan-C1: dimension 2 is not a dimension of each input
func.func @main(%x: tensor<4x3xf32>, %carry: tensor<3xf32>) -> tensor<3xf32> {
  %0, %1 = chlo.scan(%x) inits (%carry) dimension=2 {
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
    stablehlo.return %a, %b : tensor<3xf32>, tensor<3xf32>
  } : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
  return %1 : tensor<3xf32>
}
