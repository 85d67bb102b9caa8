// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main() -> tensor<2xf32> {
  // CHECK-NEXT: %0 = chlo.constant dense<[1.0, 2.5]> : tensor<2xf32>
  %0 = chlo.constant dense<[1.0, 2.5]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func private @constant_like
func.func private @constant_like(%x: tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]> {
  // CHECK-NEXT: %0 = "chlo.constant_like"(%x) <{value = 1.500000e+00 : f32}> : (tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]>
  %0 = "chlo.constant_like"(%x) <{value = 1.500000e+00 : f32}> : (tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]>
  return %0 : tensor<?x4xf32, ["batch", "4"]>
}

// CHECK-LABEL: func.func private @top_k
func.func private @top_k(%x: tensor<?x?xf32, ["batch", "vocabulary"]>) -> (tensor<?x3xf32, ["batch", "3"]>, tensor<?x3xi32, ["batch", "3"]>) {
  // CHECK-NEXT: %0, %1 = chlo.top_k(%x, k = 3) : tensor<?x?xf32, ["batch", "vocabulary"]> -> (tensor<?x3xf32, ["batch", "3"]>, tensor<?x3xi32, ["batch", "3"]>)
  %0, %1 = chlo.top_k(%x, k = 3) : tensor<?x?xf32, ["batch", "vocabulary"]> -> (tensor<?x3xf32, ["batch", "3"]>, tensor<?x3xi32, ["batch", "3"]>)
  return %0, %1 : tensor<?x3xf32, ["batch", "3"]>, tensor<?x3xi32, ["batch", "3"]>
}

// CHECK-LABEL: func.func private @ragged_dot
func.func private @ragged_dot(%x: tensor<?x5xf32, ["n", "5"]>, %y: tensor<3x5x7xf32>, %groups: tensor<3xi64>) -> tensor<?x7xf32, ["n", "7"]> {
  // CHECK-NEXT: %0 = "chlo.ragged_dot"(%x, %y, %groups) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<?x5xf32, ["n", "5"]>, tensor<3x5x7xf32>, tensor<3xi64>) -> tensor<?x7xf32, ["n", "7"]>
  %0 = "chlo.ragged_dot"(%x, %y, %groups) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<?x5xf32, ["n", "5"]>, tensor<3x5x7xf32>, tensor<3xi64>) -> tensor<?x7xf32, ["n", "7"]>
  return %0 : tensor<?x7xf32, ["n", "7"]>
}

// CHECK-LABEL: func.func private @scan
func.func private @scan(%x: tensor<?x3xf32, ["n", "3"]>, %carry: tensor<3xf32>) -> (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) {
  // CHECK-NEXT: %0, %1 = chlo.scan(%x) inits (%carry) dimension=0 attributes {is_reverse = true} {
  // CHECK-NEXT: ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
  // CHECK-NEXT: %s = stablehlo.add %a, %b : tensor<3xf32>
  // CHECK-NEXT: stablehlo.return %s, %s : tensor<3xf32>, tensor<3xf32>
  // CHECK-NEXT: } : (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) -> (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>)
  %0, %1 = chlo.scan(%x) inits (%carry) dimension=0 attributes {is_reverse = true} {
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
    %s = stablehlo.add %a, %b : tensor<3xf32>
    stablehlo.return %s, %s : tensor<3xf32>, tensor<3xf32>
  } : (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) -> (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>)
  return %0, %1 : tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>
}
