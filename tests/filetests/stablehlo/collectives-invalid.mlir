// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: all_gather-C1: all_gather_dim 1 is not a dimension of each operand
func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// CHECK: why: collective_permute-C2: devices [0, 0] are not unique
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: collective_broadcast-C1: devices [0, 1, 1, 2] are not unique
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: infeed-C3: the last result is not a token
func.func @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0, %1 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<3xi32>, tensor<3xi32>)
  return %0 : tensor<3xi32>
}
