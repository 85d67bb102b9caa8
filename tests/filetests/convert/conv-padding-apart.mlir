// RUN: gcomp opt %s -p conv-padding-apart | filecheck %s

// CHECK-LABEL: @main
// CHECK: %[[ZERO:[0-9]+]] = stablehlo.constant dense<0.0> : tensor<f32>
// CHECK-NEXT: %[[PADDED:[0-9]+]] = stablehlo.pad %x, %[[ZERO]], low = [0, 3, 2, 0], high = [0, 3, 0, 0], interior = [0, 0, 0, 0]
// CHECK-NEXT: stablehlo.convolution(%[[PADDED]], %w)
// CHECK-SAME: window = {stride = [2, 1], pad = [[0, 0], [0, 0]]}
func.func @main(%x: tensor<1x9x9x3xf32>, %w: tensor<7x3x3x8xf32>) -> tensor<1x5x9x8xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 1], pad = [[3, 3], [2, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x9x3xf32>, tensor<7x3x3x8xf32>) -> tensor<1x5x9x8xf32>
  return %0 : tensor<1x5x9x8xf32>
}

// CHECK-LABEL: @many
// CHECK: stablehlo.pad
func.func @many(%x: tensor<1x9x9x64xf32>, %w: tensor<3x3x64x16xf32>) -> tensor<1x9x9x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x9x64xf32>, tensor<3x3x64x16xf32>) -> tensor<1x9x9x16xf32>
  return %0 : tensor<1x9x9x16xf32>
}

// Groups of any number of channels.
// CHECK-LABEL: @groups
// CHECK: stablehlo.pad
// CHECK: stablehlo.pad
// CHECK-NOT: stablehlo.pad
func.func @groups(%x: tensor<1x9x9x16xf32>, %w: tensor<3x3x4x16xf32>, %v: tensor<3x3x1x16xf32>)
    -> (tensor<1x9x9x16xf32>, tensor<1x9x9x16xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64}
    : (tensor<1x9x9x16xf32>, tensor<3x3x4x16xf32>) -> tensor<1x9x9x16xf32>
  %1 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 16 : i64}
    : (tensor<1x9x9x16xf32>, tensor<3x3x1x16xf32>) -> tensor<1x9x9x16xf32>
  return %0, %1 : tensor<1x9x9x16xf32>, tensor<1x9x9x16xf32>
}

// Few features are not worth a copy of many channels, and a negative padding cuts the input.
// CHECK-LABEL: @others
// CHECK-NOT: stablehlo.pad
func.func @others(%x: tensor<1x9x9x16xf32>, %w: tensor<3x3x16x8xf32>, %y: tensor<1x9x9x3xf32>, %v: tensor<3x3x3x8xf32>)
    -> (tensor<1x9x9x8xf32>, tensor<1x9x6x8xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x9x16xf32>, tensor<3x3x16x8xf32>) -> tensor<1x9x9x8xf32>
  %1 = stablehlo.convolution(%y, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [-1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x9x3xf32>, tensor<3x3x3x8xf32>) -> tensor<1x9x6x8xf32>
  return %0, %1 : tensor<1x9x9x8xf32>, tensor<1x9x6x8xf32>
}
