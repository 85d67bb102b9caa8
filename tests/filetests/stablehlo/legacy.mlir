// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?x4x?xf32, ["batch", "4", "n"]> {
  // CHECK-NEXT: %0 = stablehlo.broadcast %x, sizes = ["batch", 4] : (tensor<?xf32, ["n"]>) -> tensor<?x4x?xf32, ["batch", "4", "n"]>
  %0 = stablehlo.broadcast %x, sizes = ["batch", 4] : (tensor<?xf32, ["n"]>) -> tensor<?x4x?xf32, ["batch", "4", "n"]>
  return %0 : tensor<?x4x?xf32, ["batch", "4", "n"]>
}

// CHECK-LABEL: func.func private @dot
func.func private @dot(%x: tensor<?x4xf32, ["n", "4"]>, %y: tensor<4xf32>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.dot %x, %y, precision = [DEFAULT, HIGHEST] : (tensor<?x4xf32, ["n", "4"]>, tensor<4xf32>) -> tensor<?xf32, ["n"]>
  %0 = stablehlo.dot %x, %y, precision = [DEFAULT, HIGHEST] : (tensor<?x4xf32, ["n", "4"]>, tensor<4xf32>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func private @einsum
func.func private @einsum(%x: tensor<?x4xf32, ["n", "4"]>, %y: tensor<4x5xf32>) -> tensor<5x?xf32, ["5", "n"]> {
  // CHECK-NEXT: %0 = stablehlo.einsum %x, %y, config = "ab,bc->ac" : (tensor<?x4xf32, ["n", "4"]>, tensor<4x5xf32>) -> tensor<?x5xf32, ["n", "5"]>
  %0 = stablehlo.einsum %x, %y, config = "ab,bc->ac" : (tensor<?x4xf32, ["n", "4"]>, tensor<4x5xf32>) -> tensor<?x5xf32, ["n", "5"]>
  // CHECK-NEXT: %1 = stablehlo.unary_einsum %0, config = "ab->ba" : (tensor<?x5xf32, ["n", "5"]>) -> tensor<5x?xf32, ["5", "n"]>
  %1 = stablehlo.unary_einsum %0, config = "ab->ba" : (tensor<?x5xf32, ["n", "5"]>) -> tensor<5x?xf32, ["5", "n"]>
  return %1 : tensor<5x?xf32, ["5", "n"]>
}

// CHECK-LABEL: func.func private @torch_index_select
func.func private @torch_index_select(%x: tensor<?x5xf32, ["n", "5"]>, %i: tensor<2x3xi32>) -> tensor<2x3x5xf32> {
  // CHECK-NEXT: %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 0 : i64, batch_dims = 0 : i64}> : (tensor<?x5xf32, ["n", "5"]>, tensor<2x3xi32>) -> tensor<2x3x5xf32>
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 0 : i64, batch_dims = 0 : i64}> : (tensor<?x5xf32, ["n", "5"]>, tensor<2x3xi32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// CHECK-LABEL: func.func private @cross_replica_sum
func.func private @cross_replica_sum(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = "stablehlo.cross-replica-sum"(%x) <{replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>}> : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %0 = "stablehlo.cross-replica-sum"(%x) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
