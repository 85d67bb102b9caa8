// RUN: gcomp opt %s -p fold-batch-norm,fold-constants | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32> {
  // scale / sqrt(variance + epsilon) is [1, 2]; the offset is bias - mean * that.
  // CHECK: [[W:%.*]] = stablehlo.constant dense<{{\[\[\[\[}}1.0, 4.0], [3.0, 8.0]]]]> : tensor<1x1x2x2xf32>
  // CHECK: [[Y:%.*]] = stablehlo.convolution(%x, [[W]])
  // CHECK: [[B:%.*]] = stablehlo.constant dense<[-1.0, 0.0]> : tensor<2xf32>
  // CHECK: [[V:%.*]] = stablehlo.broadcast_in_dim [[B]], dims = [3]
  // CHECK-NEXT: stablehlo.add [[Y]], [[V]]
  // CHECK-NOT: batch_norm
  %w = stablehlo.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %scale = stablehlo.constant dense<[2.0, 2.0]> : tensor<2xf32>
  %bias = stablehlo.constant dense<[0.0, 2.0]> : tensor<2xf32>
  %mean = stablehlo.constant dense<[1.0, 1.0]> : tensor<2xf32>
  %variance = stablehlo.constant dense<[3.0, 0.0]> : tensor<2xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} : (tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x4x2xf32>
  %1 = "stablehlo.batch_norm_inference"(%0, %scale, %bias, %mean, %variance) <{epsilon = 1.0 : f32, feature_index = 3 : i64}> : (tensor<1x4x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  return %1 : tensor<1x4x4x2xf32>
}

// An infinite scale times an offset of 0 would be a NaN.
// CHECK-LABEL: @infinite
func.func private @infinite(%x: tensor<1x4x4x1xf32>) -> tensor<1x4x4x1xf32> {
  // CHECK: batch_norm_inference
  %inf = stablehlo.constant dense<0x7F800000> : tensor<1xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<1xf32>
  %0 = "stablehlo.batch_norm_inference"(%x, %inf, %zero, %zero, %zero) <{epsilon = 1.0 : f32, feature_index = 3 : i64}> : (tensor<1x4x4x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x4x4x1xf32>
  return %0 : tensor<1x4x4x1xf32>
}
