// RUN: gcomp opt %s -p conv-to-arithmetic | filecheck %s

module {
  // The outer points of a window that is dilated beyond the image read padding alone: the one between is a product.
  // CHECK-LABEL: @only_the_middle
  func.func @only_the_middle(%x: tensor<2x4x4x3xf32>) -> tensor<2x4x4x5xf32> {
    // CHECK: [[W:%.*]] = stablehlo.slice {{%.*}} [1:2, 1:2, 0:3, 0:5]
    // CHECK: [[M:%.*]] = stablehlo.reshape [[W]]
    // CHECK: stablehlo.dot_general %x, [[M]]
    // CHECK-NOT: convolution
    // CHECK: return
    %w = stablehlo.constant dense<0.5> : tensor<3x3x3x5xf32>
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[6, 6], [4, 4]], rhs_dilate = [6, 4]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x4x3xf32>, tensor<3x3x3x5xf32>) -> tensor<2x4x4x5xf32>
    return %0 : tensor<2x4x4x5xf32>
  }

  // Of two channels for each group as well, where what is left is a convolution of fewer points.
  // CHECK-LABEL: @fewer_points
  func.func private @fewer_points(%x: tensor<1x6x4xf32>) -> tensor<1x6x4xf32> {
    // CHECK: [[W:%.*]] = stablehlo.slice {{%.*}} [1:2, 0:2, 0:4]
    // CHECK: stablehlo.convolution(%x, [[W]])
    // CHECK-SAME: window = {{{.*}}}
    %w = stablehlo.constant dense<0.5> : tensor<3x2x4xf32>
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[7, 7]], rhs_dilate = [7]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x6x4xf32>, tensor<3x2x4xf32>) -> tensor<1x6x4xf32>
    return %0 : tensor<1x6x4xf32>
  }

  // Points that read a few pixels each: a product of those, among zeros.
  // CHECK-LABEL: @few_pixels
  func.func private @few_pixels(%x: tensor<1x6x6x3xf32>) -> tensor<1x6x6x5xf32> {
    // CHECK: stablehlo.slice %x [0:1, 0:2, 0:2, 0:3]
    // CHECK: stablehlo.dot_general
    // CHECK: stablehlo.pad
    // CHECK: stablehlo.slice %x [0:1, 0:2, 0:6, 0:3]
    // CHECK: stablehlo.add
    // CHECK-NOT: convolution
    // CHECK: return
    %w = stablehlo.constant dense<0.5> : tensor<3x3x3x5xf32>
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[4, 4], [4, 4]], rhs_dilate = [4, 4]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x6x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x6x6x5xf32>
    return %0 : tensor<1x6x6x5xf32>
  }

  // Infinite times padding is NaN.
  // CHECK-LABEL: @infinite
  func.func private @infinite(%x: tensor<1x6x4xf32>, %v: tensor<3x4x4xf32>) -> (tensor<1x6x4xf32>, tensor<1x6x4xf32>) {
    // CHECK: stablehlo.convolution
    // CHECK: stablehlo.convolution
    // CHECK: return
    %w = stablehlo.constant dense<0x7F800000> : tensor<3x4x4xf32>
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[7, 7]], rhs_dilate = [7]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x4xf32>, tensor<3x4x4xf32>) -> tensor<1x6x4xf32>
    %1 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[7, 7]], rhs_dilate = [7]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x4xf32>, tensor<3x4x4xf32>) -> tensor<1x6x4xf32>
    return %0, %1 : tensor<1x6x4xf32>, tensor<1x6x4xf32>
  }
}
