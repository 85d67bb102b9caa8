// RUN: gcomp opt %s -p quantized-products | filecheck %s

// A scale that is written out for all elements, and is one number, leaves the sum as a broadcast one does.
// CHECK-LABEL: @main
func.func @main(%x: tensor<8x3xui8>, %w: tensor<3x5xi8>) -> tensor<8x5xf32> {
  // CHECK: stablehlo.dot_general {{.*}} -> tensor<8x5xi32>
  // CHECK: stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.convert %x : (tensor<8x3xui8>) -> tensor<8x3xf32>
  %1 = stablehlo.constant dense<0.5> : tensor<8x3xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<8x3xf32>
  %3 = stablehlo.convert %w : (tensor<3x5xi8>) -> tensor<3x5xf32>
  %4 = stablehlo.constant dense<0.25> : tensor<3x5xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<3x5xf32>
  %6 = stablehlo.dot_general %2, %5, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
  return %6 : tensor<8x5xf32>
}

// CHECK-LABEL: @convolution
func.func private @convolution(%x: tensor<1x4x4x2xui8>, %w: tensor<3x3x2x2xi8>) -> tensor<1x2x2x2xf32> {
  // CHECK: stablehlo.convolution{{.*}} -> tensor<1x2x2x2xi32>
  %0 = stablehlo.convert %x : (tensor<1x4x4x2xui8>) -> tensor<1x4x4x2xf32>
  %1 = stablehlo.constant dense<0.5> : tensor<1x4x4x2xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<1x4x4x2xf32>
  %3 = stablehlo.convert %w : (tensor<3x3x2x2xi8>) -> tensor<3x3x2x2xf32>
  %4 = stablehlo.constant dense<0.25> : tensor<3x3x2x2xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<3x3x2x2xf32>
  %6 = stablehlo.convolution(%2, %5) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<3x3x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %6 : tensor<1x2x2x2xf32>
}
