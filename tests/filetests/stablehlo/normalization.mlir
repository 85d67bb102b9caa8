// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x3x?xf32, ["batch", "3", "w"]>, %v: tensor<3xf32>) -> tensor<?x3x?xf32, ["batch", "3", "w"]> {
  // CHECK-NEXT: %0 = "stablehlo.batch_norm_inference"(%x, %v, %v, %v, %v) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<?x3x?xf32, ["batch", "3", "w"]>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<?x3x?xf32, ["batch", "3", "w"]>
  %0 = "stablehlo.batch_norm_inference"(%x, %v, %v, %v, %v) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<?x3x?xf32, ["batch", "3", "w"]>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<?x3x?xf32, ["batch", "3", "w"]>
  return %0 : tensor<?x3x?xf32, ["batch", "3", "w"]>
}

// The statistics have as many elements as there are features, which may be a symbol too.
// CHECK-LABEL: func.func private @batch_norm_training
func.func private @batch_norm_training(%x: tensor<?x?xf32, ["batch", "c"]>, %v: tensor<?xf32, ["c"]>) -> (tensor<?x?xf32, ["batch", "c"]>, tensor<?xf32, ["c"]>, tensor<?xf32, ["c"]>) {
  // CHECK-NEXT: %0, %1, %2 = "stablehlo.batch_norm_training"(%x, %v, %v) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<?x?xf32, ["batch", "c"]>, tensor<?xf32, ["c"]>, tensor<?xf32, ["c"]>) -> (tensor<?x?xf32, ["batch", "c"]>, tensor<?xf32, ["c"]>, tensor<?xf32, ["c"]>)
  %0, %1, %2 = "stablehlo.batch_norm_training"(%x, %v, %v) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<?x?xf32, ["batch", "c"]>, tensor<?xf32, ["c"]>, tensor<?xf32, ["c"]>) -> (tensor<?x?xf32, ["batch", "c"]>, tensor<?xf32, ["c"]>, tensor<?xf32, ["c"]>)
  return %0, %1, %2 : tensor<?x?xf32, ["batch", "c"]>, tensor<?xf32, ["c"]>, tensor<?xf32, ["c"]>
}

// CHECK-LABEL: func.func private @batch_norm_grad
func.func private @batch_norm_grad(%x: tensor<?x3xf32, ["batch", "3"]>, %v: tensor<3xf32>) -> (tensor<?x3xf32, ["batch", "3"]>, tensor<3xf32>, tensor<3xf32>) {
  // CHECK-NEXT: %0, %1, %2 = "stablehlo.batch_norm_grad"(%x, %v, %v, %v, %x) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<?x3xf32, ["batch", "3"]>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<?x3xf32, ["batch", "3"]>) -> (tensor<?x3xf32, ["batch", "3"]>, tensor<3xf32>, tensor<3xf32>)
  %0, %1, %2 = "stablehlo.batch_norm_grad"(%x, %v, %v, %v, %x) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<?x3xf32, ["batch", "3"]>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<?x3xf32, ["batch", "3"]>) -> (tensor<?x3xf32, ["batch", "3"]>, tensor<3xf32>, tensor<3xf32>)
  return %0, %1, %2 : tensor<?x3xf32, ["batch", "3"]>, tensor<3xf32>, tensor<3xf32>
}
