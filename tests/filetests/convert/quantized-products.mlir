// RUN: gcomp opt %s -p quantized-products | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<8x3xui8>, %w: tensor<3x5xi8>) -> tensor<8x5xf32> {
  // CHECK: [[W:%.*]] = stablehlo.convert %w : (tensor<3x5xi8>) -> tensor<3x5xi32>
  // CHECK: [[P:%.*]] = stablehlo.dot_general {{%.*}}, [[W]]
  // CHECK: [[Q:%.*]] = stablehlo.convert [[P]] : (tensor<8x5xi32>) -> tensor<8x5xf32>
  // CHECK: [[S:%.*]] = stablehlo.multiply {{.*}} : tensor<5xf32>
  // CHECK: [[T:%.*]] = stablehlo.broadcast_in_dim [[S]], dims = [1]
  // CHECK: stablehlo.multiply [[Q]], [[T]]
  %0 = stablehlo.convert %x : (tensor<8x3xui8>) -> tensor<8x3xf32>
  %1 = stablehlo.constant dense<7> : tensor<ui8>
  %2 = stablehlo.convert %1 : (tensor<ui8>) -> tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
  %4 = stablehlo.subtract %0, %3 : tensor<8x3xf32>
  %5 = stablehlo.constant dense<0.5> : tensor<f32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
  %7 = stablehlo.multiply %4, %6 : tensor<8x3xf32>
  %8 = stablehlo.convert %w : (tensor<3x5xi8>) -> tensor<3x5xf32>
  %9 = stablehlo.constant dense<[0.1, 0.2, 0.3, 0.4, 0.5]> : tensor<5xf32>
  %10 = stablehlo.broadcast_in_dim %9, dims = [1] : (tensor<5xf32>) -> tensor<3x5xf32>
  %11 = stablehlo.multiply %8, %10 : tensor<3x5xf32>
  %12 = stablehlo.dot_general %7, %11, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
  return %12 : tensor<8x5xf32>
}

// A scale for each input channel does not leave the sum.
// CHECK-LABEL: @along
func.func private @along(%x: tensor<8x3xi8>, %w: tensor<3x5xi8>) -> tensor<8x5xf32> {
  // CHECK: stablehlo.dot_general {{.*}} -> tensor<8x5xf32>
  %0 = stablehlo.convert %x : (tensor<8x3xi8>) -> tensor<8x3xf32>
  %1 = stablehlo.constant dense<0.5> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<8x3xf32>
  %4 = stablehlo.convert %w : (tensor<3x5xi8>) -> tensor<3x5xf32>
  %5 = stablehlo.constant dense<[0.1, 0.2, 0.3]> : tensor<3xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xf32>) -> tensor<3x5xf32>
  %7 = stablehlo.multiply %4, %6 : tensor<3x5xf32>
  %8 = stablehlo.dot_general %3, %7, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
  return %8 : tensor<8x5xf32>
}

// CHECK-LABEL: @convolution
func.func private @convolution(%x: tensor<1x2x6xi8>, %w: tensor<4x2x3xi8>) -> tensor<1x4x4xf32> {
  // CHECK: stablehlo.convolution({{.*}} -> tensor<1x4x4xi32>
  // CHECK: stablehlo.broadcast_in_dim {{.*}}, dims = [1] : (tensor<4xf32>) -> tensor<1x4x4xf32>
  %0 = stablehlo.convert %x : (tensor<1x2x6xi8>) -> tensor<1x2x6xf32>
  %1 = stablehlo.constant dense<0.5> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1x2x6xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<1x2x6xf32>
  %4 = stablehlo.convert %w : (tensor<4x2x3xi8>) -> tensor<4x2x3xf32>
  %5 = stablehlo.constant dense<[0.1, 0.2, 0.3, 0.4]> : tensor<4xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<4xf32>) -> tensor<4x2x3xf32>
  %7 = stablehlo.multiply %4, %6 : tensor<4x2x3xf32>
  %8 = stablehlo.convolution(%3, %7) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x6xf32>, tensor<4x2x3xf32>) -> tensor<1x4x4xf32>
  return %8 : tensor<1x4x4xf32>
}
