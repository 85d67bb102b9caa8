// RUN: gcomp opt %s -p conv-to-arithmetic | filecheck %s

// A kernel of 7 x 7 has as many points as are written out at most.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x9x8x2xf32>, %w: tensor<7x7x1x2xf32>) -> tensor<1x3x2x2xf32> {
  // CHECK-NOT: stablehlo.convolution
  // CHECK: return
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x9x8x2xf32>, tensor<7x7x1x2xf32>) -> tensor<1x3x2x2xf32>
  return %0 : tensor<1x3x2x2xf32>
}
