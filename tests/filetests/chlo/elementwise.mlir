// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]> {
  // CHECK-NEXT: %0 = chlo.acos %x : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %0 = chlo.acos %x : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %1 = chlo.acosh %0 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %1 = chlo.acosh %0 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %2 = chlo.asin %1 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %2 = chlo.asin %1 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %3 = chlo.asinh %2 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %3 = chlo.asinh %2 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %4 = chlo.atan %3 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %4 = chlo.atan %3 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %5 = chlo.atanh %4 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %5 = chlo.atanh %4 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %6 = chlo.bessel_i1e %5 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %6 = chlo.bessel_i1e %5 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %7 = chlo.cosh %6 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %7 = chlo.cosh %6 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %8 = chlo.digamma %7 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %8 = chlo.digamma %7 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %9 = chlo.erf %8 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %9 = chlo.erf %8 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %10 = chlo.erf_inv %9 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %10 = chlo.erf_inv %9 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %11 = chlo.erfc %10 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %11 = chlo.erfc %10 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %12 = chlo.lgamma %11 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %12 = chlo.lgamma %11 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %13 = chlo.sinh %12 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %13 = chlo.sinh %12 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %14 = chlo.square %13 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %14 = chlo.square %13 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  // CHECK-NEXT: %15 = chlo.tan %14 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  %15 = chlo.tan %14 : tensor<?x4xf32, ["batch", "4"]> -> tensor<?x4xf32, ["batch", "4"]>
  return %15 : tensor<?x4xf32, ["batch", "4"]>
}

// CHECK-LABEL: func.func private @complex
func.func private @complex(%z: tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xcomplex<f32>, ["n"]> {
  // CHECK-NEXT: %0 = chlo._asin_acos_kernel %z : tensor<?xcomplex<f32>, ["n"]> -> tensor<?xcomplex<f32>, ["n"]>
  %0 = chlo._asin_acos_kernel %z : tensor<?xcomplex<f32>, ["n"]> -> tensor<?xcomplex<f32>, ["n"]>
  // CHECK-NEXT: %1 = chlo.conj %0 : tensor<?xcomplex<f32>, ["n"]> -> tensor<?xcomplex<f32>, ["n"]>
  %1 = chlo.conj %0 : tensor<?xcomplex<f32>, ["n"]> -> tensor<?xcomplex<f32>, ["n"]>
  return %1 : tensor<?xcomplex<f32>, ["n"]>
}

// CHECK-LABEL: func.func private @predicates
func.func private @predicates(%x: tensor<?xf32, ["n"]>) -> tensor<?xi1, ["n"]> {
  // CHECK-NEXT: %0 = chlo.is_inf %x : tensor<?xf32, ["n"]> -> tensor<?xi1, ["n"]>
  %0 = chlo.is_inf %x : tensor<?xf32, ["n"]> -> tensor<?xi1, ["n"]>
  // CHECK-NEXT: %1 = chlo.is_neg_inf %x : tensor<?xf32, ["n"]> -> tensor<?xi1, ["n"]>
  %1 = chlo.is_neg_inf %x : tensor<?xf32, ["n"]> -> tensor<?xi1, ["n"]>
  // CHECK-NEXT: %2 = chlo.is_pos_inf %x : tensor<?xf32, ["n"]> -> tensor<?xi1, ["n"]>
  %2 = chlo.is_pos_inf %x : tensor<?xf32, ["n"]> -> tensor<?xi1, ["n"]>
  return %2 : tensor<?xi1, ["n"]>
}

// CHECK-LABEL: func.func private @binary
func.func private @binary(%x: tensor<?xf64, ["n"]>, %y: tensor<?xf64, ["n"]>) -> tensor<?xf64, ["n"]> {
  // CHECK-NEXT: %0 = chlo.next_after %x, %y : tensor<?xf64, ["n"]>, tensor<?xf64, ["n"]> -> tensor<?xf64, ["n"]>
  %0 = chlo.next_after %x, %y : tensor<?xf64, ["n"]>, tensor<?xf64, ["n"]> -> tensor<?xf64, ["n"]>
  // CHECK-NEXT: %1 = chlo.polygamma %0, %y : tensor<?xf64, ["n"]>, tensor<?xf64, ["n"]> -> tensor<?xf64, ["n"]>
  %1 = chlo.polygamma %0, %y : tensor<?xf64, ["n"]>, tensor<?xf64, ["n"]> -> tensor<?xf64, ["n"]>
  // CHECK-NEXT: %2 = chlo.zeta %1, %y : tensor<?xf64, ["n"]>, tensor<?xf64, ["n"]> -> tensor<?xf64, ["n"]>
  %2 = chlo.zeta %1, %y : tensor<?xf64, ["n"]>, tensor<?xf64, ["n"]> -> tensor<?xf64, ["n"]>
  return %2 : tensor<?xf64, ["n"]>
}

// CHECK-LABEL: func.func private @mulhi
func.func private @mulhi(%x: tensor<?xi32, ["n"]>, %y: tensor<?xi32, ["n"]>) -> tensor<?xi32, ["n"]> {
  // CHECK-NEXT: %0 = chlo.mulhi %x, %y : tensor<?xi32, ["n"]>, tensor<?xi32, ["n"]> -> tensor<?xi32, ["n"]>
  %0 = chlo.mulhi %x, %y : tensor<?xi32, ["n"]>, tensor<?xi32, ["n"]> -> tensor<?xi32, ["n"]>
  return %0 : tensor<?xi32, ["n"]>
}
