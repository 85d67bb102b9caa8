// RUN: gcomp opt %s | filecheck %s

// Rows of a table, as an embedding looks them up.
// CHECK-LABEL: func.func @main
func.func @main(%table: tensor<?x64xf32, ["vocabulary", "64"]>, %ids: tensor<?x1xi32, ["n", "1"]>) -> tensor<?x64xf32, ["n", "64"]> {
  // CHECK-NEXT: %0 = "stablehlo.gather"(%table, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>, indices_are_sorted = false}> : (tensor<?x64xf32, ["vocabulary", "64"]>, tensor<?x1xi32, ["n", "1"]>) -> tensor<?x64xf32, ["n", "64"]>
  %0 = "stablehlo.gather"(%table, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>, indices_are_sorted = false}> : (tensor<?x64xf32, ["vocabulary", "64"]>, tensor<?x1xi32, ["n", "1"]>) -> tensor<?x64xf32, ["n", "64"]>
  return %0 : tensor<?x64xf32, ["n", "64"]>
}

// With batching dimensions, and a slice of symbolic size.
// CHECK-LABEL: func.func private @batched
func.func private @batched(%x: tensor<?x4x?xf32, ["batch", "4", "m"]>, %i: tensor<?x2xi64, ["batch", "2"]>) -> tensor<?x2x?xf32, ["batch", "2", "m"]> {
  // CHECK-NEXT: %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = ["1", "1", "m"], indices_are_sorted = true}> : (tensor<?x4x?xf32, ["batch", "4", "m"]>, tensor<?x2xi64, ["batch", "2"]>) -> tensor<?x2x?xf32, ["batch", "2", "m"]>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = ["1", "1", "m"], indices_are_sorted = true}> : (tensor<?x4x?xf32, ["batch", "4", "m"]>, tensor<?x2xi64, ["batch", "2"]>) -> tensor<?x2x?xf32, ["batch", "2", "m"]>
  return %0 : tensor<?x2x?xf32, ["batch", "2", "m"]>
}

// CHECK-LABEL: func.func private @dynamic_gather
func.func private @dynamic_gather(%x: tensor<?x5xf32, ["n", "5"]>, %i: tensor<2x1xi32>, %sizes: tensor<2xi32>) -> tensor<2x?xf32> {
  // CHECK-NEXT: %0 = "stablehlo.dynamic_gather"(%x, %i, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<?x5xf32, ["n", "5"]>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x?xf32>
  %0 = "stablehlo.dynamic_gather"(%x, %i, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<?x5xf32, ["n", "5"]>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// CHECK-LABEL: func.func private @scatter
func.func private @scatter(%x: tensor<?x5xf32, ["n", "5"]>, %i: tensor<2x1xi32>, %u: tensor<2x5xf32>) -> tensor<?x5xf32, ["n", "5"]> {
  // CHECK-NEXT: %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = true, unique_indices = false}> ({
  // CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>):
  // CHECK-NEXT: %s = stablehlo.add %a, %b : tensor<f32>
  // CHECK-NEXT: stablehlo.return %s : tensor<f32>
  // CHECK-NEXT: }) : (tensor<?x5xf32, ["n", "5"]>, tensor<2x1xi32>, tensor<2x5xf32>) -> tensor<?x5xf32, ["n", "5"]>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = true, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<?x5xf32, ["n", "5"]>, tensor<2x1xi32>, tensor<2x5xf32>) -> tensor<?x5xf32, ["n", "5"]>
  return %0 : tensor<?x5xf32, ["n", "5"]>
}

// A slice as long as the whole of a symbolic dimension.
// CHECK-LABEL: func.func private @dynamic_slice
func.func private @dynamic_slice(%x: tensor<4x?xf32, ["4", "n"]>, %i: tensor<i32>) -> tensor<2x?xf32, ["2", "n"]> {
  // CHECK-NEXT: %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, "n"] : (tensor<4x?xf32, ["4", "n"]>, tensor<i32>, tensor<i32>) -> tensor<2x?xf32, ["2", "n"]>
  %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, "n"] : (tensor<4x?xf32, ["4", "n"]>, tensor<i32>, tensor<i32>) -> tensor<2x?xf32, ["2", "n"]>
  return %0 : tensor<2x?xf32, ["2", "n"]>
}

// CHECK-LABEL: func.func private @dynamic_update_slice
func.func private @dynamic_update_slice(%cache: tensor<?x64xf32, ["past", "64"]>, %row: tensor<1x64xf32>, %i: tensor<i64>) -> tensor<?x64xf32, ["past", "64"]> {
  // CHECK-NEXT: %0 = stablehlo.dynamic_update_slice %cache, %row, %i, %i : (tensor<?x64xf32, ["past", "64"]>, tensor<1x64xf32>, tensor<i64>, tensor<i64>) -> tensor<?x64xf32, ["past", "64"]>
  %0 = stablehlo.dynamic_update_slice %cache, %row, %i, %i : (tensor<?x64xf32, ["past", "64"]>, tensor<1x64xf32>, tensor<i64>, tensor<i64>) -> tensor<?x64xf32, ["past", "64"]>
  return %0 : tensor<?x64xf32, ["past", "64"]>
}
