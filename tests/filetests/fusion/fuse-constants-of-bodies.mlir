// RUN: gcomp opt %s -p fuse | filecheck %s

// What a scatter computes of two elements reads a constant from outside of it: `cse` makes it so. It is a kernel.
// CHECK-LABEL: @main
// CHECK-NEXT: kernel.launch scatter "scatter" (
// CHECK-NEXT: stablehlo.scatter
// CHECK-NEXT: ^bb0
// CHECK-NEXT: [[TWO:%.*]] = stablehlo.constant dense<2.0>
// CHECK-NEXT: stablehlo.multiply {{%.*}}, [[TWO]]
func.func @main(%x: tensor<4xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.multiply %a, %two : tensor<f32>
    %2 = stablehlo.add %1, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
