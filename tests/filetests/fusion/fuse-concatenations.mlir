// RUN: gcomp opt %s -p "fuse{target=x86-64-v3}" | filecheck %s

// A product takes each element of an operand many times, and would find out each time which operand of a concatenation
// it comes from. What is computed once takes it along.
// CHECK-LABEL: @main
// CHECK: kernel.launch loop
// CHECK: stablehlo.concatenate
// CHECK: stablehlo.concatenate
// CHECK-NEXT: stablehlo.exponential
// CHECK: kernel.launch convolution
// CHECK-NEXT: stablehlo.convolution
func.func @main(%x: tensor<1x32x32x16xf32>, %y: tensor<1x32x32x16xf32>, %w: tensor<3x3x32x32xf32>)
    -> (tensor<1x32x32x32xf32>, tensor<1x32x64x16xf32>) {
  %0 = stablehlo.concatenate %x, %y, dim = 3 : (tensor<1x32x32x16xf32>, tensor<1x32x32x16xf32>) -> tensor<1x32x32x32xf32>
  %1 = stablehlo.convolution(%0, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x32x32x32xf32>, tensor<3x3x32x32xf32>) -> tensor<1x32x32x32xf32>
  %2 = stablehlo.concatenate %x, %y, dim = 2 : (tensor<1x32x32x16xf32>, tensor<1x32x32x16xf32>) -> tensor<1x32x64x16xf32>
  %3 = stablehlo.exponential %2 : tensor<1x32x64x16xf32>
  return %1, %3 : tensor<1x32x32x32xf32>, tensor<1x32x64x16xf32>
}
