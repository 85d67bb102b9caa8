// RUN: gcomp opt %s -p "conv-to-arithmetic{max-features=2}" | filecheck %s

// A single channel that many features read makes a product; few features, and those of a channel each, multiply-adds.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x9x1xf32>, %w: tensor<3x1x4xf32>, %few: tensor<3x1x2xf32>, %y: tensor<1x9x4xf32>)
    -> (tensor<1x7x4xf32>, tensor<1x7x2xf32>, tensor<1x7x4xf32>) {
  // CHECK: stablehlo.convolution(%x, %w)
  // CHECK-NOT: stablehlo.convolution
  // CHECK: return
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x1xf32>, tensor<3x1x4xf32>) -> tensor<1x7x4xf32>
  %1 = stablehlo.convolution(%x, %few) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x1xf32>, tensor<3x1x2xf32>) -> tensor<1x7x2xf32>
  %2 = stablehlo.convolution(%y, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 4 : i64}
    : (tensor<1x9x4xf32>, tensor<3x1x4xf32>) -> tensor<1x7x4xf32>
  return %0, %1, %2 : tensor<1x7x4xf32>, tensor<1x7x2xf32>, tensor<1x7x4xf32>
}
