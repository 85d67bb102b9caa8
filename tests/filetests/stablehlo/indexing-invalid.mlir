// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: gather-C21: slice size 6 does not fit a dimension of size 5
func.func @main(%x: tensor<4x5xf32>, %i: tensor<2x1xi32>) -> tensor<2x6xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<4x5xf32>, tensor<2x1xi32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}
// -----
// CHECK: why: dynamic_gather-C11: slice_sizes tensor<3xi32> for an operand of rank 2
func.func @main(%x: tensor<4x5xf32>, %i: tensor<2x1xi32>, %s: tensor<3xi32>) -> tensor<2x?xf32> {
  %0 = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x5xf32>, tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}
// -----
// CHECK: why: scatter-C4: updates of shape (2, 6) do not fit (2, 5)
func.func @main(%x: tensor<4x5xf32>, %i: tensor<2x1xi32>, %u: tensor<2x6xf32>) -> tensor<4x5xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4x5xf32>, tensor<2x1xi32>, tensor<2x6xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
// -----
// CHECK: why: dynamic_slice-C4: slice size n + 1 does not fit a dimension of size n
func.func @main(%x: tensor<?xf32, ["n"]>, %i: tensor<i32>) -> tensor<?xf32, ["n + 1"]> {
  %0 = stablehlo.dynamic_slice %x, %i, sizes = ["n + 1"] : (tensor<?xf32, ["n"]>, tensor<i32>) -> tensor<?xf32, ["n + 1"]>
  return %0 : tensor<?xf32, ["n + 1"]>
}
// -----
// CHECK: why: dynamic_update_slice-C6: an update of size 5 does not fit a dimension of size 4
func.func @main(%x: tensor<4xf32>, %u: tensor<5xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<4xf32>, tensor<5xf32>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
