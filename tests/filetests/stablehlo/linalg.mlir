// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<?x3x3xf32, ["batch", "3", "3"]>) -> tensor<?x3x3xf32, ["batch", "3", "3"]> {
  // CHECK-NEXT: %0 = stablehlo.cholesky %a, lower = true : tensor<?x3x3xf32, ["batch", "3", "3"]>
  %0 = stablehlo.cholesky %a, lower = true : tensor<?x3x3xf32, ["batch", "3", "3"]>
  return %0 : tensor<?x3x3xf32, ["batch", "3", "3"]>
}

// CHECK-LABEL: func.func private @triangular_solve
func.func private @triangular_solve(%a: tensor<?x3x3xf32, ["batch", "3", "3"]>, %b: tensor<?x3x?xf32, ["batch", "3", "m"]>) -> tensor<?x3x?xf32, ["batch", "3", "m"]> {
  // CHECK-NEXT: %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<?x3x3xf32, ["batch", "3", "3"]>, tensor<?x3x?xf32, ["batch", "3", "m"]>) -> tensor<?x3x?xf32, ["batch", "3", "m"]>
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<?x3x3xf32, ["batch", "3", "3"]>, tensor<?x3x?xf32, ["batch", "3", "m"]>) -> tensor<?x3x?xf32, ["batch", "3", "m"]>
  return %0 : tensor<?x3x?xf32, ["batch", "3", "m"]>
}

// CHECK-LABEL: func.func private @fft
func.func private @fft(%x: tensor<?x9xf32, ["batch", "9"]>) -> tensor<?x9xf32, ["batch", "9"]> {
  // CHECK-NEXT: %0 = stablehlo.fft %x, type = RFFT, length = [9] : (tensor<?x9xf32, ["batch", "9"]>) -> tensor<?x5xcomplex<f32>, ["batch", "5"]>
  %0 = stablehlo.fft %x, type = RFFT, length = [9] : (tensor<?x9xf32, ["batch", "9"]>) -> tensor<?x5xcomplex<f32>, ["batch", "5"]>
  // CHECK-NEXT: %1 = stablehlo.fft %0, type = IRFFT, length = [9] : (tensor<?x5xcomplex<f32>, ["batch", "5"]>) -> tensor<?x9xf32, ["batch", "9"]>
  %1 = stablehlo.fft %0, type = IRFFT, length = [9] : (tensor<?x5xcomplex<f32>, ["batch", "5"]>) -> tensor<?x9xf32, ["batch", "9"]>
  return %1 : tensor<?x9xf32, ["batch", "9"]>
}
