// RUN: gcomp opt %s -p choose-convolutions | filecheck %s

// Tiles of 4x4 results, of which 8 rows have two and 6 columns too: what pads the image pads it to whole tiles.
// CHECK-LABEL: @main
// CHECK: stablehlo.pad %x, %zero, low = [0, 1, 1, 0], high = [0, 1, 3, 0], interior = [0, 0, 0, 0]
// CHECK: gcomp.weight @window : tensor<1x36x64x32xf32>
// CHECK: stablehlo.composite "gcomp.winograd"
// CHECK-SAME: algorithm = "winograd 4x4"
// CHECK-SAME: composite_attributes = {tile = 4 : i64, slice_sizes = array<i64: 8, 6>}
func.func @main(%x: tensor<9x8x6x64xf32>) -> tensor<9x8x6x32xf32> {
  %w = stablehlo.constant dense<0.5> : tensor<3x3x64x32xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0]
    : (tensor<9x8x6x64xf32>, tensor<f32>) -> tensor<9x10x8x64xf32>
  %1 = stablehlo.convolution(%0, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<9x10x8x64xf32>, tensor<3x3x64x32xf32>) -> tensor<9x8x6x32xf32>
  return %1 : tensor<9x8x6x32xf32>
}

// Strides, few channels, windows of other sizes, and weights that are not known.
// CHECK-LABEL: @others
// CHECK-NOT: composite
func.func @others(%x: tensor<9x9x9x16xf32>, %y: tensor<9x9x9x8xf32>, %u: tensor<3x3x16x16xf32>)
    -> (tensor<9x4x4x16xf32>, tensor<9x7x7x16xf32>, tensor<9x8x8x16xf32>, tensor<9x7x7x16xf32>) {
  %w = stablehlo.constant dense<0.5> : tensor<3x3x16x16xf32>
  %v = stablehlo.constant dense<0.5> : tensor<3x3x8x16xf32>
  %small = stablehlo.constant dense<0.5> : tensor<2x2x16x16xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<9x9x9x16xf32>, tensor<3x3x16x16xf32>) -> tensor<9x4x4x16xf32>
  %1 = stablehlo.convolution(%y, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<9x9x9x8xf32>, tensor<3x3x8x16xf32>) -> tensor<9x7x7x16xf32>
  %2 = stablehlo.convolution(%x, %small) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<9x9x9x16xf32>, tensor<2x2x16x16xf32>) -> tensor<9x8x8x16xf32>
  %3 = stablehlo.convolution(%x, %u) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<9x9x9x16xf32>, tensor<3x3x16x16xf32>) -> tensor<9x7x7x16xf32>
  return %0, %1, %2, %3 : tensor<9x4x4x16xf32>, tensor<9x7x7x16xf32>, tensor<9x8x8x16xf32>, tensor<9x7x7x16xf32>
}
