// RUN: gcomp opt %s -p conv-to-arithmetic{max-points=0} | filecheck %s

// Kernels of one point only; a depthwise one of one point is no matrix.
// CHECK-LABEL: @main
func.func @main(%x: tensor<?x4x4x8xf32, ["n", "4", "4", "8"]>, %w: tensor<1x1x8x16xf32>, %v: tensor<1x1x1x8xf32>) -> (tensor<?x4x4x16xf32, ["n", "4", "4", "16"]>, tensor<?x4x4x8xf32, ["n", "4", "4", "8"]>) {
  // CHECK-NEXT: [[M:%.*]] = stablehlo.reshape %w
  // CHECK-NEXT: stablehlo.dot_general %x, [[M]], contracting_dims = [3] x [0]
  // CHECK-NEXT: stablehlo.convolution(%x, %v)
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} : (tensor<?x4x4x8xf32, ["n", "4", "4", "8"]>, tensor<1x1x8x16xf32>) -> tensor<?x4x4x16xf32, ["n", "4", "4", "16"]>
  %1 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {feature_group_count = 8 : i64} : (tensor<?x4x4x8xf32, ["n", "4", "4", "8"]>, tensor<1x1x1x8xf32>) -> tensor<?x4x4x8xf32, ["n", "4", "4", "8"]>
  return %0, %1 : tensor<?x4x4x16xf32, ["n", "4", "4", "16"]>, tensor<?x4x4x8xf32, ["n", "4", "4", "8"]>
}
