// RUN: gcomp opt %s | filecheck %s

// Sizes are aligned at the last dimension, as in NumPy.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x4xf32, ["batch", "4"]>, %y: tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]> {
  // CHECK-NEXT: %0 = chlo.broadcast_add %x, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %0 = chlo.broadcast_add %x, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %1 = chlo.broadcast_atan2 %0, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %1 = chlo.broadcast_atan2 %0, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %2 = chlo.broadcast_divide %1, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %2 = chlo.broadcast_divide %1, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %3 = chlo.broadcast_maximum %2, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %3 = chlo.broadcast_maximum %2, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %4 = chlo.broadcast_minimum %3, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %4 = chlo.broadcast_minimum %3, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %5 = chlo.broadcast_multiply %4, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %5 = chlo.broadcast_multiply %4, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %6 = chlo.broadcast_next_after %5, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %6 = chlo.broadcast_next_after %5, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %7 = chlo.broadcast_polygamma %6, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %7 = chlo.broadcast_polygamma %6, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %8 = chlo.broadcast_power %7, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %8 = chlo.broadcast_power %7, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %9 = chlo.broadcast_remainder %8, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %9 = chlo.broadcast_remainder %8, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %10 = chlo.broadcast_subtract %9, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %10 = chlo.broadcast_subtract %9, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %11 = chlo.broadcast_zeta %10, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  %11 = chlo.broadcast_zeta %10, %y : (tensor<?x4xf32, ["batch", "4"]>, tensor<4xf32>) -> tensor<?x4xf32, ["batch", "4"]>
  return %11 : tensor<?x4xf32, ["batch", "4"]>
}

// Both operands may be repeated.
// CHECK-LABEL: func.func private @integers
func.func private @integers(%x: tensor<?x1xi32, ["n", "1"]>, %y: tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]> {
  // CHECK-NEXT: %0 = chlo.broadcast_and %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  %0 = chlo.broadcast_and %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  // CHECK-NEXT: %1 = chlo.broadcast_or %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  %1 = chlo.broadcast_or %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  // CHECK-NEXT: %2 = chlo.broadcast_xor %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  %2 = chlo.broadcast_xor %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  // CHECK-NEXT: %3 = chlo.broadcast_shift_left %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  %3 = chlo.broadcast_shift_left %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  // CHECK-NEXT: %4 = chlo.broadcast_shift_right_arithmetic %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  %4 = chlo.broadcast_shift_right_arithmetic %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  // CHECK-NEXT: %5 = chlo.broadcast_shift_right_logical %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  %5 = chlo.broadcast_shift_right_logical %x, %y : (tensor<?x1xi32, ["n", "1"]>, tensor<1x?xi32, ["1", "m"]>) -> tensor<?x?xi32, ["n", "m"]>
  return %5 : tensor<?x?xi32, ["n", "m"]>
}

// `broadcast_dimensions` are the dimensions of the result that the operand of lower rank has.
// CHECK-LABEL: func.func private @broadcast_dimensions
func.func private @broadcast_dimensions(%x: tensor<?xf32, ["n"]>, %y: tensor<?x3xf32, ["n", "3"]>) -> tensor<?x3xf32, ["n", "3"]> {
  // CHECK-NEXT: %0 = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64: 0>} : (tensor<?xf32, ["n"]>, tensor<?x3xf32, ["n", "3"]>) -> tensor<?x3xf32, ["n", "3"]>
  %0 = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64: 0>} : (tensor<?xf32, ["n"]>, tensor<?x3xf32, ["n", "3"]>) -> tensor<?x3xf32, ["n", "3"]>
  return %0 : tensor<?x3xf32, ["n", "3"]>
}

// CHECK-LABEL: func.func private @other_elements
func.func private @other_elements(%x: tensor<?x3xf32, ["n", "3"]>, %y: tensor<3xf32>) -> tensor<?x3xf32, ["n", "3"]> {
  // CHECK-NEXT: %0 = chlo.broadcast_complex %x, %y : (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) -> tensor<?x3xcomplex<f32>, ["n", "3"]>
  %0 = chlo.broadcast_complex %x, %y : (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) -> tensor<?x3xcomplex<f32>, ["n", "3"]>
  // CHECK-NEXT: %1 = chlo.broadcast_compare %x, %y {comparison_direction = #chlo<comparison_direction LT>} : (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) -> tensor<?x3xi1, ["n", "3"]>
  %1 = chlo.broadcast_compare %x, %y {comparison_direction = #chlo<comparison_direction LT>} : (tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) -> tensor<?x3xi1, ["n", "3"]>
  // CHECK-NEXT: %2 = chlo.broadcast_select %1, %x, %y : (tensor<?x3xi1, ["n", "3"]>, tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) -> tensor<?x3xf32, ["n", "3"]>
  %2 = chlo.broadcast_select %1, %x, %y : (tensor<?x3xi1, ["n", "3"]>, tensor<?x3xf32, ["n", "3"]>, tensor<3xf32>) -> tensor<?x3xf32, ["n", "3"]>
  return %2 : tensor<?x3xf32, ["n", "3"]>
}
