// RUN: gcomp opt %s -p "conv-dilation-apart,canonicalize" | filecheck %s

// A window with one point for each phase: one of one point, whose features are the phases of a pixel.
// CHECK-LABEL: @main
// CHECK: %[[PHASES:[0-9]+]] = stablehlo.convolution(%x, {{.*}}pad = [[0, 0], [0, 0]]{{.*}}tensor<1x1x7x24xf32>) -> tensor<1x5x4x24xf32>
// CHECK-NEXT: %[[APART:[0-9]+]] = stablehlo.reshape %[[PHASES]] {{.*}} -> tensor<1x5x4x2x3x4xf32>
// CHECK-NEXT: stablehlo.transpose %[[APART]], dims = [0, 1, 3, 2, 4, 5]
// CHECK-NEXT: stablehlo.reshape {{.*}} -> tensor<1x10x12x4xf32>
func.func @main(%x: tensor<1x5x4x7xf32>) -> tensor<1x10x12x4xf32> {
  %w = stablehlo.constant dense<0.5> : tensor<2x3x7x4xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [2, 2]], lhs_dilate = [2, 3]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x4x7xf32>, tensor<2x3x7x4xf32>) -> tensor<1x10x12x4xf32>
  return %0 : tensor<1x10x12x4xf32>
}

// Of two points for each phase along one dimension: the first of the result is the second phase of its pixel.
// CHECK-LABEL: @overlapping
// CHECK: stablehlo.convolution(%x, {{.*}}pad = [[1, 1], [0, 0]]{{.*}}tensor<2x1x7x24xf32>) -> tensor<1x6x4x24xf32>
// CHECK: stablehlo.reshape {{.*}} -> tensor<1x12x12x4xf32>
// CHECK-NEXT: stablehlo.slice {{.*}} [0:1, 1:11, 0:12, 0:4]
func.func @overlapping(%x: tensor<1x5x4x7xf32>) -> tensor<1x10x12x4xf32> {
  %w = stablehlo.constant dense<0.5> : tensor<4x3x7x4xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[2, 2], [2, 2]], lhs_dilate = [2, 3]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x4x7xf32>, tensor<4x3x7x4xf32>) -> tensor<1x10x12x4xf32>
  return %0 : tensor<1x10x12x4xf32>
}

// Phases of two points and of one, beside each other along the dimension that is dilated; of an odd size, one is cut.
// CHECK-LABEL: @phases
// CHECK: %[[EVEN:[0-9]+]] = stablehlo.convolution(%x, {{.*}}pad = [[0, 0], [1, 1]]{{.*}}tensor<1x3x7x4xf32>) -> tensor<1x5x4x4xf32>
// CHECK: %[[ODD:[0-9]+]] = stablehlo.convolution(%x, {{.*}}pad = [[0, 1], [1, 1]]{{.*}}tensor<2x3x7x4xf32>) -> tensor<1x5x4x4xf32>
// CHECK: stablehlo.concatenate {{.*}}, dim = 2 : (tensor<1x5x1x4x1x4xf32>, tensor<1x5x1x4x1x4xf32>)
// CHECK-NEXT: stablehlo.reshape {{.*}} -> tensor<1x10x4x4xf32>
// CHECK-NEXT: stablehlo.slice {{.*}} [0:1, 0:9, 0:4, 0:4]
func.func @phases(%x: tensor<1x5x4x7xf32>) -> tensor<1x9x4x4xf32> {
  %w = stablehlo.constant dense<0.5> : tensor<3x3x7x4xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x4x7xf32>, tensor<3x3x7x4xf32>) -> tensor<1x9x4x4xf32>
  return %0 : tensor<1x9x4x4xf32>
}

// What dilation puts in between makes NaN of an infinite weight, and of any that is an input; a window of one point
// leaves phases without any; a stride takes phases of phases.
// CHECK-LABEL: @others
// CHECK-NOT: stablehlo.slice
// CHECK: return
func.func @others(%x: tensor<1x5x7xf32>, %v: tensor<2x7x4xf32>)
    -> (tensor<1x10x4xf32>, tensor<1x10x4xf32>, tensor<1x9x4xf32>, tensor<1x5x4xf32>) {
  %w = stablehlo.constant dense<0x7F800000> : tensor<2x7x4xf32>
  %u = stablehlo.constant dense<0.5> : tensor<1x7x4xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[1, 1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x7xf32>, tensor<2x7x4xf32>) -> tensor<1x10x4xf32>
  %1 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[1, 1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x7xf32>, tensor<2x7x4xf32>) -> tensor<1x10x4xf32>
  %2 = stablehlo.convolution(%x, %u) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[0, 0]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x7xf32>, tensor<1x7x4xf32>) -> tensor<1x9x4xf32>
  %3 = stablehlo.convolution(%x, %u) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [2], pad = [[0, 0]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x5x7xf32>, tensor<1x7x4xf32>) -> tensor<1x5x4xf32>
  return %0, %1, %2, %3 : tensor<1x10x4xf32>, tensor<1x10x4xf32>, tensor<1x9x4xf32>, tensor<1x5x4xf32>
}

// Images of any size: a product for each pixel, or phases.
// CHECK-LABEL: @any_size
// CHECK-NOT: lhs_dilate = [2
// CHECK: return
func.func @any_size(%x: tensor<?x?x?x7xf32, ["n", "h", "v", "7"]>)
    -> (tensor<?x?x?x4xf32, ["n", "2*h", "2*v", "4"]>, tensor<?x?x?x4xf32, ["n", "2*h", "2*v", "4"]>) {
  %u = stablehlo.constant dense<0.5> : tensor<2x2x7x4xf32>
  %w = stablehlo.constant dense<0.5> : tensor<4x4x7x4xf32>
  %0 = stablehlo.convolution(%x, %u) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<?x?x?x7xf32, ["n", "h", "v", "7"]>, tensor<2x2x7x4xf32>) -> tensor<?x?x?x4xf32, ["n", "2*h", "2*v", "4"]>
  %1 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<?x?x?x7xf32, ["n", "h", "v", "7"]>, tensor<4x4x7x4xf32>) -> tensor<?x?x?x4xf32, ["n", "2*h", "2*v", "4"]>
  return %0, %1 : tensor<?x?x?x4xf32, ["n", "2*h", "2*v", "4"]>, tensor<?x?x?x4xf32, ["n", "2*h", "2*v", "4"]>
}
