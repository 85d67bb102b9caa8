// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: broadcast_add-C1: sizes n and m do not broadcast
func.func @main(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]> {
  %0 = chlo.broadcast_add %x, %y : (tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
// -----
// CHECK: why: broadcast_add-C2: broadcast_dimensions [2] are not dimensions of rank 2
func.func @main(%x: tensor<2xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64: 2>} : (tensor<2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// CHECK: why: broadcast_and-I1: operand 0 has element type f32, which the op does not take
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.broadcast_and %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: broadcast_select-I1: the predicate is not boolean
func.func @main(%x: tensor<2xf32>, %y: tensor<2xi32>) -> tensor<2xf32> {
  %0 = chlo.broadcast_select %y, %x, %x : (tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
