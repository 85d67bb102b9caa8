// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: batch_norm_inference-C1: feature_index 2 is not a dimension of rank 2
func.func @main(%x: tensor<2x3xf32>, %v: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.batch_norm_inference"(%x, %v, %v, %v, %v) <{epsilon = 1.000000e-03 : f32, feature_index = 2 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// CHECK: why: batch_norm_training-C3: tensor<2xf32> does not hold 3 features
func.func @main(%x: tensor<2x3xf32>, %v: tensor<2xf32>) -> tensor<2x3xf32> {
  %0, %1, %2 = "stablehlo.batch_norm_training"(%x, %v, %v) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0 : tensor<2x3xf32>
}
// -----
// CHECK: why: batch_norm_grad-C3: operand and grad_output have different shapes
func.func @main(%x: tensor<?x3xf32, ["n", "3"]>, %g: tensor<?x3xf32, ["m", "3"]>, %v: tensor<3xf32>) -> tensor<3xf32> {
  %0, %1, %2 = "stablehlo.batch_norm_grad"(%x, %v, %v, %v, %g) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<?x3xf32, ["m", "3"]>) -> (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>, tensor<3xf32>)
  return %1 : tensor<3xf32>
}
