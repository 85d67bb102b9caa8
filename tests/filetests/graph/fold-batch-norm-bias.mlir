// RUN: gcomp opt %s -p fold-batch-norm,fold-constants | filecheck %s

// A bias between the convolution and the normalization goes into what is added, on either side of the sum.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x4x4x2xf32>) -> (tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>) {
  // CHECK: [[W:%.*]] = stablehlo.constant dense<{{\[\[\[\[}}1.0, 4.0], [3.0, 8.0]]]]>
  // CHECK: [[Y:%.*]] = stablehlo.convolution(%x, [[W]])
  // CHECK: [[B:%.*]] = stablehlo.constant dense<[4.0, 14.0]> : tensor<2xf32>
  // CHECK: [[V:%.*]] = stablehlo.broadcast_in_dim [[B]], dims = [3]
  // CHECK-NEXT: [[R:%.*]] = stablehlo.add [[Y]], [[V]]
  // CHECK: [[X:%.*]] = stablehlo.constant dense<{{\[\[\[\[}}1.0, 4.0], [3.0, 8.0]]]]>
  // CHECK: [[Z:%.*]] = stablehlo.convolution(%x, [[X]])
  // CHECK: [[C:%.*]] = stablehlo.constant dense<[4.0, 14.0]> : tensor<2xf32>
  // CHECK: [[U:%.*]] = stablehlo.broadcast_in_dim [[C]], dims = [3]
  // CHECK-NEXT: [[S:%.*]] = stablehlo.add [[Z]], [[U]]
  // CHECK-NEXT: return [[R]], [[S]]
  %w = stablehlo.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %b = stablehlo.constant dense<[5.0, 7.0]> : tensor<2xf32>
  %scale = stablehlo.constant dense<[2.0, 2.0]> : tensor<2xf32>
  %bias = stablehlo.constant dense<[0.0, 2.0]> : tensor<2xf32>
  %mean = stablehlo.constant dense<[1.0, 1.0]> : tensor<2xf32>
  %variance = stablehlo.constant dense<[3.0, 0.0]> : tensor<2xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} : (tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x4x2xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %2 = stablehlo.add %0, %1 : tensor<1x4x4x2xf32>
  %3 = "stablehlo.batch_norm_inference"(%2, %scale, %bias, %mean, %variance) <{epsilon = 1.0 : f32, feature_index = 3 : i64}> : (tensor<1x4x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %4 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} : (tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x4x2xf32>
  %5 = stablehlo.add %1, %4 : tensor<1x4x4x2xf32>
  %6 = "stablehlo.batch_norm_inference"(%5, %scale, %bias, %mean, %variance) <{epsilon = 1.0 : f32, feature_index = 3 : i64}> : (tensor<1x4x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  return %3, %6 : tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>
}

// A convolution that somebody else reads is not scaled: the normalization becomes a product and a sum.
// CHECK-LABEL: @shared
func.func private @shared(%x: tensor<1x4x4x2xf32>) -> (tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>) {
  // CHECK: [[Y:%.*]] = stablehlo.convolution
  // CHECK: [[P:%.*]] = stablehlo.multiply [[Y]]
  // CHECK: [[R:%.*]] = stablehlo.add [[P]]
  // CHECK-NEXT: return [[Y]], [[R]]
  %w = stablehlo.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} : (tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x4x2xf32>
  %1 = "stablehlo.batch_norm_inference"(%0, %c, %c, %c, %c) <{epsilon = 1.0 : f32, feature_index = 3 : i64}> : (tensor<1x4x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  return %0, %1 : tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>
}
