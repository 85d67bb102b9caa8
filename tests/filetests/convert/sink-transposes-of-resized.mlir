// RUN: gcomp opt %s -p sink-transposes,canonicalize | filecheck %s

// Rows and columns that are taken by their numbers, as an image is resized, are taken of channels-last data.

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x4x6x3xf32>, %i: tensor<8xi64>, %j: tensor<5xi64>) -> tensor<2x8x5x3xf32> {
  // CHECK-NOT: stablehlo.transpose
  // CHECK: [[R:%.*]] = "stablehlo.gather"(%x, %i) <{{.*}}offset_dims = [0, 2, 3], collapsed_slice_dims = [1]{{.*}} -> tensor<2x8x6x3xf32>
  // CHECK: [[C:%.*]] = "stablehlo.gather"([[R]], %j) <{{.*}}offset_dims = [0, 1, 3], collapsed_slice_dims = [2]{{.*}} -> tensor<2x8x5x3xf32>
  // CHECK: return [[C]]
  %0 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x4x6x3xf32>) -> tensor<2x3x4x6xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 3], collapsed_slice_dims = [2], start_index_map = [2], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3, 1, 6>, indices_are_sorted = false}> : (tensor<2x3x4x6xf32>, tensor<8xi64>) -> tensor<2x3x8x6xf32>
  %2 = "stablehlo.gather"(%1, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 2], collapsed_slice_dims = [3], start_index_map = [3], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3, 8, 1>, indices_are_sorted = false}> : (tensor<2x3x8x6xf32>, tensor<5xi64>) -> tensor<2x3x8x5xf32>
  %3 = stablehlo.transpose %2, dims = [0, 2, 3, 1] : (tensor<2x3x8x5xf32>) -> tensor<2x8x5x3xf32>
  return %3 : tensor<2x8x5x3xf32>
}
