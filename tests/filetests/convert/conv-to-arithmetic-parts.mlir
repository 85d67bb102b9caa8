// RUN: gcomp opt %s -p "conv-to-arithmetic{max-points=2 max-parts=2}" | filecheck %s

// Three points are two parts, whose sums are added.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x5x2xf32>, %w: tensor<3x1x2xf32>) -> tensor<1x3x2xf32> {
  // CHECK-NOT: stablehlo.convolution
  // CHECK: [[A:%.*]] = stablehlo.multiply
  // CHECK: [[B:%.*]] = stablehlo.multiply
  // CHECK-NEXT: [[S:%.*]] = stablehlo.add [[A]], [[B]]
  // CHECK: [[C:%.*]] = stablehlo.multiply
  // CHECK-NEXT: stablehlo.add [[S]], [[C]]
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {feature_group_count = 2 : i64} : (tensor<1x5x2xf32>, tensor<3x1x2xf32>) -> tensor<1x3x2xf32>
  return %0 : tensor<1x3x2xf32>
}

// Five points are too many.
// CHECK-LABEL: @larger
func.func private @larger(%x: tensor<1x5x2xf32>, %w: tensor<5x1x2xf32>) -> tensor<1x1x2xf32> {
  // CHECK: stablehlo.convolution
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {feature_group_count = 2 : i64} : (tensor<1x5x2xf32>, tensor<5x1x2xf32>) -> tensor<1x1x2xf32>
  return %0 : tensor<1x1x2xf32>
}
