// RUN: gcomp opt %s -p dot-rows | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x64x5x8xf32>, %w: tensor<2x64x16xf32>) -> tensor<2x5x8x16xf32> {
  // CHECK: [[T:%.*]] = stablehlo.transpose %x, dims = [0, 2, 3, 1]
  // CHECK: stablehlo.dot_general [[T]], %w, batching_dims = [0] x [0], contracting_dims = [3] x [1]
  %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [1] x [1]
    : (tensor<2x64x5x8xf32>, tensor<2x64x16xf32>) -> tensor<2x5x8x16xf32>
  return %0 : tensor<2x5x8x16xf32>
}

// Of two dimensions that are summed over, the last is enough.
// CHECK-LABEL: @rows
func.func private @rows(%x: tensor<64x4x32x1xf32>, %w: tensor<64x32x16xf32>) -> tensor<4x1x16xf32> {
  // CHECK-NOT: transpose
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [0, 2] x [0, 1]
    : (tensor<64x4x32x1xf32>, tensor<64x32x16xf32>) -> tensor<4x1x16xf32>
  return %0 : tensor<4x1x16xf32>
}

// CHECK-LABEL: @any_size
func.func private @any_size(%x: tensor<64x?xf32, ["64", "n"]>, %w: tensor<64x16xf32>) -> tensor<?x16xf32, ["n", "16"]> {
  // CHECK: stablehlo.transpose %x, dims = [1, 0]
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0]
    : (tensor<64x?xf32, ["64", "n"]>, tensor<64x16xf32>) -> tensor<?x16xf32, ["n", "16"]>
  return %0 : tensor<?x16xf32, ["n", "16"]>
}
