// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: dynamic_broadcast_in_dim-C5: size 3 does not broadcast to 4
func.func @main(%x: tensor<3xf32>, %shape: tensor<2xi64>) -> tensor<?x4xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// -----
// CHECK: why: dynamic_iota-C2: tensor<3xi64> has not one size for each of 2 dimensions
func.func @main(%shape: tensor<3xi64>) -> tensor<?x?xi32> {
  %0 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<3xi64>) -> tensor<?x?xi32>
  return %0 : tensor<?x?xi32>
}
// -----
// CHECK: why: dynamic_reshape-C2: tensor<?xf32, ["n"]> does not have the elements of tensor<?xf32, ["n + 1"]>
func.func @main(%x: tensor<?xf32, ["n"]>, %shape: tensor<1xi64>) -> tensor<?xf32, ["n + 1"]> {
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32, ["n"]>, tensor<1xi64>) -> tensor<?xf32, ["n + 1"]>
  return %0 : tensor<?xf32, ["n + 1"]>
}
// -----
// CHECK: why: get_dimension_size-C1: dimension 1 is not a dimension of tensor<?xf32, ["n"]>
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<i32> {
  %0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?xf32, ["n"]>) -> tensor<i32>
  return %0 : tensor<i32>
}
// -----
// CHECK: why: set_dimension_size-I2: the size has type tensor<i64>, expected tensor<i32>
func.func @main(%x: tensor<4x3xf32>, %size: tensor<i64>) -> tensor<?x3xf32> {
  %0 = stablehlo.set_dimension_size %x, %size, dim = 0 : (tensor<4x3xf32>, tensor<i64>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
