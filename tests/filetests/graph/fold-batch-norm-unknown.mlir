// RUN: gcomp opt %s -p fold-batch-norm | filecheck %s

// Statistics that nobody knows: the program stays as it is, and the pass says so.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x4x2xf32>, %s: tensor<2xf32>) -> tensor<1x4x2xf32> {
  // CHECK: batch_norm_inference
  %c = stablehlo.constant dense<1.0> : tensor<2xf32>
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %c, %c, %c) <{epsilon = 1.0 : f32, feature_index = 2 : i64}> : (tensor<1x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x4x2xf32>
  return %0 : tensor<1x4x2xf32>
}
