// RUN: gcomp opt %s -p fold-batch-norm | filecheck %s

// What is normalized may be known as well.
// CHECK-LABEL: @main
func.func @main() -> tensor<1x4x2xf32> {
  // CHECK-NOT: batch_norm_inference
  // CHECK: return
  %x = stablehlo.constant dense<3.0> : tensor<1x4x2xf32>
  %c = stablehlo.constant dense<1.0> : tensor<2xf32>
  %0 = "stablehlo.batch_norm_inference"(%x, %c, %c, %c, %c) <{epsilon = 1.0 : f32, feature_index = 2 : i64}> : (tensor<1x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x4x2xf32>
  return %0 : tensor<1x4x2xf32>
}
