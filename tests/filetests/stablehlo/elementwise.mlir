// RUN: gcomp opt %s | filecheck %s

// `["batch", "4"]` are the dimensions of the type, one of them a symbol.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]> {
  // CHECK-NEXT: %0 = stablehlo.abs %x : tensor<?x4xf32, ["batch", "4"]>
  %0 = stablehlo.abs %x : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %1 = stablehlo.cbrt %0 : tensor<?x4xf32, ["batch", "4"]>
  %1 = stablehlo.cbrt %0 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %2 = stablehlo.ceil %1 : tensor<?x4xf32, ["batch", "4"]>
  %2 = stablehlo.ceil %1 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %3 = stablehlo.cosine %2 : tensor<?x4xf32, ["batch", "4"]>
  %3 = stablehlo.cosine %2 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %4 = stablehlo.exponential %3 : tensor<?x4xf32, ["batch", "4"]>
  %4 = stablehlo.exponential %3 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %5 = stablehlo.exponential_minus_one %4 : tensor<?x4xf32, ["batch", "4"]>
  %5 = stablehlo.exponential_minus_one %4 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %6 = stablehlo.floor %5 : tensor<?x4xf32, ["batch", "4"]>
  %6 = stablehlo.floor %5 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %7 = stablehlo.log %6 : tensor<?x4xf32, ["batch", "4"]>
  %7 = stablehlo.log %6 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %8 = stablehlo.log_plus_one %7 : tensor<?x4xf32, ["batch", "4"]>
  %8 = stablehlo.log_plus_one %7 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %9 = stablehlo.logistic %8 : tensor<?x4xf32, ["batch", "4"]>
  %9 = stablehlo.logistic %8 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %10 = stablehlo.negate %9 : tensor<?x4xf32, ["batch", "4"]>
  %10 = stablehlo.negate %9 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %11 = stablehlo.round_nearest_afz %10 : tensor<?x4xf32, ["batch", "4"]>
  %11 = stablehlo.round_nearest_afz %10 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %12 = stablehlo.round_nearest_even %11 : tensor<?x4xf32, ["batch", "4"]>
  %12 = stablehlo.round_nearest_even %11 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %13 = stablehlo.rsqrt %12 : tensor<?x4xf32, ["batch", "4"]>
  %13 = stablehlo.rsqrt %12 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %14 = stablehlo.sign %13 : tensor<?x4xf32, ["batch", "4"]>
  %14 = stablehlo.sign %13 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %15 = stablehlo.sine %14 : tensor<?x4xf32, ["batch", "4"]>
  %15 = stablehlo.sine %14 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %16 = stablehlo.sqrt %15 : tensor<?x4xf32, ["batch", "4"]>
  %16 = stablehlo.sqrt %15 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %17 = stablehlo.tan %16 : tensor<?x4xf32, ["batch", "4"]>
  %17 = stablehlo.tan %16 : tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %18 = stablehlo.tanh %17 : tensor<?x4xf32, ["batch", "4"]>
  %18 = stablehlo.tanh %17 : tensor<?x4xf32, ["batch", "4"]>
  return %18 : tensor<?x4xf32, ["batch", "4"]>
}

// A request for accuracy is a property, printed where the specification's own text has it.
// CHECK-LABEL: func.func private @result_accuracy
func.func private @result_accuracy(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: %0 = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2xf32>
  %0 = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func private @integers_unary
func.func private @integers_unary(%x: tensor<?xi32, ["2*n + 1"]>) -> tensor<?xi32, ["2*n + 1"]> {
  // CHECK-NEXT: %0 = stablehlo.count_leading_zeros %x : tensor<?xi32, ["2*n + 1"]>
  %0 = stablehlo.count_leading_zeros %x : tensor<?xi32, ["2*n + 1"]>
  // CHECK-NEXT: %1 = stablehlo.not %0 : tensor<?xi32, ["2*n + 1"]>
  %1 = stablehlo.not %0 : tensor<?xi32, ["2*n + 1"]>
  // CHECK-NEXT: %2 = stablehlo.popcnt %1 : tensor<?xi32, ["2*n + 1"]>
  %2 = stablehlo.popcnt %1 : tensor<?xi32, ["2*n + 1"]>
  return %2 : tensor<?xi32, ["2*n + 1"]>
}

// Where the result has another type than the operand, both are written.
// CHECK-LABEL: func.func private @parts
func.func private @parts(%re: tensor<?xf32, ["n"]>, %im: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %z = stablehlo.complex %re, %im : tensor<?xcomplex<f32>, ["n"]>
  %z = stablehlo.complex %re, %im : tensor<?xcomplex<f32>, ["n"]>
  // CHECK-NEXT: %0 = stablehlo.real %z : (tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xf32, ["n"]>
  %0 = stablehlo.real %z : (tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xf32, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.imag %z : (tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xf32, ["n"]>
  %1 = stablehlo.imag %z : (tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xf32, ["n"]>
  // CHECK-NEXT: %2 = stablehlo.abs %z : (tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xf32, ["n"]>
  %2 = stablehlo.abs %z : (tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xf32, ["n"]>
  return %2 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func private @is_finite
func.func private @is_finite(%x: tensor<?xbf16, ["n"]>) -> tensor<?xi1, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.is_finite %x : (tensor<?xbf16, ["n"]>) -> tensor<?xi1, ["n"]>
  %0 = stablehlo.is_finite %x : (tensor<?xbf16, ["n"]>) -> tensor<?xi1, ["n"]>
  return %0 : tensor<?xi1, ["n"]>
}

// CHECK-LABEL: func.func private @floats_binary
func.func private @floats_binary(%x: tensor<?xf64, ["n"]>, %y: tensor<?xf64, ["n"]>) -> tensor<?xf64, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.add %x, %y : tensor<?xf64, ["n"]>
  %0 = stablehlo.add %x, %y : tensor<?xf64, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.atan2 %0, %y : tensor<?xf64, ["n"]>
  %1 = stablehlo.atan2 %0, %y : tensor<?xf64, ["n"]>
  // CHECK-NEXT: %2 = stablehlo.divide %1, %y : tensor<?xf64, ["n"]>
  %2 = stablehlo.divide %1, %y : tensor<?xf64, ["n"]>
  // CHECK-NEXT: %3 = stablehlo.maximum %2, %y : tensor<?xf64, ["n"]>
  %3 = stablehlo.maximum %2, %y : tensor<?xf64, ["n"]>
  // CHECK-NEXT: %4 = stablehlo.minimum %3, %y : tensor<?xf64, ["n"]>
  %4 = stablehlo.minimum %3, %y : tensor<?xf64, ["n"]>
  // CHECK-NEXT: %5 = stablehlo.multiply %4, %y : tensor<?xf64, ["n"]>
  %5 = stablehlo.multiply %4, %y : tensor<?xf64, ["n"]>
  // CHECK-NEXT: %6 = stablehlo.power %5, %y : tensor<?xf64, ["n"]>
  %6 = stablehlo.power %5, %y : tensor<?xf64, ["n"]>
  // CHECK-NEXT: %7 = stablehlo.remainder %6, %y : tensor<?xf64, ["n"]>
  %7 = stablehlo.remainder %6, %y : tensor<?xf64, ["n"]>
  // CHECK-NEXT: %8 = stablehlo.subtract %7, %y : tensor<?xf64, ["n"]>
  %8 = stablehlo.subtract %7, %y : tensor<?xf64, ["n"]>
  return %8 : tensor<?xf64, ["n"]>
}

// CHECK-LABEL: func.func private @bits
func.func private @bits(%x: tensor<?xui8, ["n"]>, %y: tensor<?xui8, ["n"]>) -> tensor<?xui8, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.and %x, %y : tensor<?xui8, ["n"]>
  %0 = stablehlo.and %x, %y : tensor<?xui8, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.or %0, %y : tensor<?xui8, ["n"]>
  %1 = stablehlo.or %0, %y : tensor<?xui8, ["n"]>
  // CHECK-NEXT: %2 = stablehlo.xor %1, %y : tensor<?xui8, ["n"]>
  %2 = stablehlo.xor %1, %y : tensor<?xui8, ["n"]>
  // CHECK-NEXT: %3 = stablehlo.shift_left %2, %y : tensor<?xui8, ["n"]>
  %3 = stablehlo.shift_left %2, %y : tensor<?xui8, ["n"]>
  // CHECK-NEXT: %4 = stablehlo.shift_right_arithmetic %3, %y : tensor<?xui8, ["n"]>
  %4 = stablehlo.shift_right_arithmetic %3, %y : tensor<?xui8, ["n"]>
  // CHECK-NEXT: %5 = stablehlo.shift_right_logical %4, %y : tensor<?xui8, ["n"]>
  %5 = stablehlo.shift_right_logical %4, %y : tensor<?xui8, ["n"]>
  return %5 : tensor<?xui8, ["n"]>
}

// An unknown size, a bare `?`, is compatible with every other.
// CHECK-LABEL: func.func private @unknown
func.func private @unknown(%x: tensor<?xf32>, %y: tensor<?xf32, ["n"]>) -> tensor<?xf32> {
  // CHECK-NEXT: %0 = stablehlo.add %x, %y : (tensor<?xf32>, tensor<?xf32, ["n"]>) -> tensor<?xf32>
  %0 = stablehlo.add %x, %y : (tensor<?xf32>, tensor<?xf32, ["n"]>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func private @compare
func.func private @compare(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["n"]>) -> tensor<?xi1, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.compare LT, %x, %y : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xi1, ["n"]>
  %0 = stablehlo.compare LT, %x, %y : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xi1, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.compare GE, %x, %y, TOTALORDER : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xi1, ["n"]>
  %1 = stablehlo.compare GE, %x, %y, TOTALORDER : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xi1, ["n"]>
  return %1 : tensor<?xi1, ["n"]>
}

// One predicate for all elements, or one for each.
// CHECK-LABEL: func.func private @select
func.func private @select(%p: tensor<i1>, %q: tensor<?xi1, ["n"]>, %x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.select %p, %x, %x : tensor<i1>, tensor<?xf32, ["n"]>
  %0 = stablehlo.select %p, %x, %x : tensor<i1>, tensor<?xf32, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.select %q, %0, %x : tensor<?xi1, ["n"]>, tensor<?xf32, ["n"]>
  %1 = stablehlo.select %q, %0, %x : tensor<?xi1, ["n"]>, tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func private @clamp
func.func private @clamp(%low: tensor<f32>, %x: tensor<?xf32, ["n"]>, %high: tensor<f32>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.clamp %low, %x, %high : (tensor<f32>, tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["n"]>
  %0 = stablehlo.clamp %low, %x, %high : (tensor<f32>, tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.clamp %x, %0, %x : tensor<?xf32, ["n"]>
  %1 = stablehlo.clamp %x, %0, %x : tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}
