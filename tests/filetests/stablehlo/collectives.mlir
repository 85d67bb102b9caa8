// RUN: gcomp opt %s | filecheck %s

// Ops across devices are declared, so that programs that hold them can be read and refused.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x4xf32, ["n", "4"]>) -> tensor<?x8xf32, ["n", "8"]> {
  // CHECK-NEXT: %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> : (tensor<?x4xf32, ["n", "4"]>) -> tensor<?x8xf32, ["n", "8"]>
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> : (tensor<?x4xf32, ["n", "4"]>) -> tensor<?x8xf32, ["n", "8"]>
  return %0 : tensor<?x8xf32, ["n", "8"]>
}

// CHECK-LABEL: func.func private @folds
func.func private @folds(%x: tensor<?x4xf32, ["n", "4"]>) -> tensor<?x2xf32, ["n", "2"]> {
  // CHECK-NEXT: %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> ({
  // CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>):
  // CHECK-NEXT: %s = stablehlo.add %a, %b : tensor<f32>
  // CHECK-NEXT: stablehlo.return %s : tensor<f32>
  // CHECK-NEXT: }) : (tensor<?x4xf32, ["n", "4"]>) -> tensor<?x4xf32, ["n", "4"]>
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<?x4xf32, ["n", "4"]>) -> tensor<?x4xf32, ["n", "4"]>
  // CHECK-NEXT: %1 = "stablehlo.reduce_scatter"(%0) <{scatter_dimension = 1 : i64, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> ({
  // CHECK-NEXT: ^bb0(%c: tensor<f32>, %d: tensor<f32>):
  // CHECK-NEXT: %t = stablehlo.add %c, %d : tensor<f32>
  // CHECK-NEXT: stablehlo.return %t : tensor<f32>
  // CHECK-NEXT: }) : (tensor<?x4xf32, ["n", "4"]>) -> tensor<?x2xf32, ["n", "2"]>
  %1 = "stablehlo.reduce_scatter"(%0) <{scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    %t = stablehlo.add %c, %d : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<?x4xf32, ["n", "4"]>) -> tensor<?x2xf32, ["n", "2"]>
  return %1 : tensor<?x2xf32, ["n", "2"]>
}

// CHECK-LABEL: func.func private @exchanges
func.func private @exchanges(%x: tensor<2x4xf32>) -> tensor<4x2xf32> {
  // CHECK-NEXT: %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: %1 = "stablehlo.collective_broadcast"(%0) <{replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %1 = "stablehlo.collective_broadcast"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: %2 = "stablehlo.collective_permute"(%1) <{source_target_pairs = dense<{{\[\[}}0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = "stablehlo.collective_permute"(%1) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// CHECK-LABEL: func.func private @ids
func.func private @ids() -> (tensor<ui32>, tensor<ui32>) {
  // CHECK-NEXT: %0 = stablehlo.partition_id : tensor<ui32>
  %0 = stablehlo.partition_id : tensor<ui32>
  // CHECK-NEXT: %1 = stablehlo.replica_id : tensor<ui32>
  %1 = stablehlo.replica_id : tensor<ui32>
  return %0, %1 : tensor<ui32>, tensor<ui32>
}

// CHECK-LABEL: func.func private @transfers
func.func private @transfers(%x: tensor<?xf32, ["n"]>, %t: !stablehlo.token) -> tensor<3xi32> {
  // CHECK-NEXT: %0 = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false}> : (tensor<?xf32, ["n"]>, !stablehlo.token) -> !stablehlo.token
  %0 = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false}> : (tensor<?xf32, ["n"]>, !stablehlo.token) -> !stablehlo.token
  // CHECK-NEXT: %1, %2 = "stablehlo.recv"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  %1, %2 = "stablehlo.recv"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token)
  // CHECK-NEXT: %3, %4 = "stablehlo.infeed"(%2) <{infeed_config = "foo"}> : (!stablehlo.token) -> (tensor<3xi32>, !stablehlo.token)
  %3, %4 = "stablehlo.infeed"(%2) <{infeed_config = "foo"}> : (!stablehlo.token) -> (tensor<3xi32>, !stablehlo.token)
  // CHECK-NEXT: %5 = "stablehlo.outfeed"(%3, %4) <{outfeed_config = ""}> : (tensor<3xi32>, !stablehlo.token) -> !stablehlo.token
  %5 = "stablehlo.outfeed"(%3, %4) <{outfeed_config = ""}> : (tensor<3xi32>, !stablehlo.token) -> !stablehlo.token
  return %3 : tensor<3xi32>
}
