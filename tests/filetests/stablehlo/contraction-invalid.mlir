// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: dot_general-C10: sizes n and m differ
func.func @main(%x: tensor<?x4xf32, ["n", "4"]>, %y: tensor<?x4xf32, ["m", "4"]>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<?x4xf32, ["n", "4"]>, tensor<?x4xf32, ["m", "4"]>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// -----
// CHECK: why: dot_general-C12: the result's shape is (2, 3), expected (2, 4)
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// CHECK: why: convolution-C11: size 3 is not divisible by the group count 2
func.func @main(%x: tensor<1x8x3xf32>, %w: tensor<3x3x4xf32>) -> tensor<1x6x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x8x3xf32>, tensor<3x3x4xf32>) -> tensor<1x6x4xf32>
  return %0 : tensor<1x6x4xf32>
}
// -----
// CHECK: why: convolution-C25: the result's shape is (1, 8, 4), expected (1, 6, 4)
func.func @main(%x: tensor<1x8x3xf32>, %w: tensor<3x3x4xf32>) -> tensor<1x8x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x3xf32>, tensor<3x3x4xf32>) -> tensor<1x8x4xf32>
  return %0 : tensor<1x8x4xf32>
}
// -----
// CHECK: why: dot_general-C13: products of f32 have no place in a result of i1
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> tensor<2x2xi1> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xi1>
  return %0 : tensor<2x2xi1>
}
// -----
// CHECK: why: dot_general-C13: products of complex<f32> have no place in a result of f32
func.func @main(%x: tensor<2x3xcomplex<f32>>, %y: tensor<3x2xcomplex<f32>>) -> tensor<2x2xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xcomplex<f32>>, tensor<3x2xcomplex<f32>>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
