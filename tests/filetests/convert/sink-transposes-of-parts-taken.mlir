// RUN: gcomp opt %s -p sink-transposes | filecheck %s

// A gather of slices that are not whole is none of rows: the transpose stays.

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x4x6x3xf32>, %i: tensor<8xi64>) -> tensor<2x3x8x5xf32> {
  // CHECK: [[T:%.*]] = stablehlo.transpose %x
  // CHECK: [[R:%.*]] = "stablehlo.gather"([[T]], %i)
  // CHECK: return [[R]]
  %0 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x4x6x3xf32>) -> tensor<2x3x4x6xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 3], collapsed_slice_dims = [2], start_index_map = [2], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3, 1, 5>, indices_are_sorted = false}> : (tensor<2x3x4x6xf32>, tensor<8xi64>) -> tensor<2x3x8x5xf32>
  return %1 : tensor<2x3x8x5xf32>
}
