// RUN: gcomp opt %s -p fold-batch-norm --check-each | filecheck %s

// A kernel of narrower numbers than the result is not scaled.
// CHECK-LABEL: @main
// CHECK: stablehlo.convolution(%x, %{{.*}}) {{.*}}tensor<1x1x2x3xf16>
func.func @main(%x: tensor<1x4x4x2xf16>) -> tensor<1x4x4x3xf32> {
  %w = stablehlo.constant dense<[[[[1.0, 2.0, 3.0], [0.5, 1.5, 2.5]]]]> : tensor<1x1x2x3xf16>
  %s = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xf16>, tensor<1x1x2x3xf16>) -> tensor<1x4x4x3xf32>
  %r = "stablehlo.batch_norm_inference"(%c, %s, %s, %s, %s) {epsilon = 1.0e-5 : f32, feature_index = 3 : i64} : (tensor<1x4x4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x4x4x3xf32>
  return %r : tensor<1x4x4x3xf32>
}
