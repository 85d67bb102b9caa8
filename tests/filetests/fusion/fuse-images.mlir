// RUN: gcomp opt %s -p "fuse{target=x86-64-v3}" | filecheck %s

// An image's channels become the last once, and not at each point of a window.
// CHECK-LABEL: @main
// CHECK: kernel.launch loop
// CHECK-NEXT: stablehlo.transpose
// CHECK: kernel.launch convolution
// CHECK-NEXT: stablehlo.convolution
func.func @main(%x: tensor<1x3x64x64xf32>, %w: tensor<4x4x3x16xf32>) -> tensor<1x16x16x16xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 3, 1] : (tensor<1x3x64x64xf32>) -> tensor<1x64x64x3xf32>
  %1 = stablehlo.convolution(%0, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [4, 4], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x64x64x3xf32>, tensor<4x4x3x16xf32>) -> tensor<1x16x16x16xf32>
  return %1 : tensor<1x16x16x16xf32>
}
