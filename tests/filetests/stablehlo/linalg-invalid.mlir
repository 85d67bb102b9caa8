// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: cholesky-C3: tensor<?x3xf32, ["n", "3"]> does not hold square matrices
func.func @main(%a: tensor<?x3xf32, ["n", "3"]>) -> tensor<?x3xf32, ["n", "3"]> {
  %0 = stablehlo.cholesky %a : tensor<?x3xf32, ["n", "3"]>
  return %0 : tensor<?x3xf32, ["n", "3"]>
}
// -----
// CHECK: why: triangular_solve-C3: tensor<3x3xf32> does not multiply tensor<4x2xf32>
func.func @main(%a: tensor<3x3xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<3x3xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// -----
// CHECK: why: fft-C2: FFT does not take f32
func.func @main(%x: tensor<8xf32>) -> tensor<8xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [8] : (tensor<8xf32>) -> tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}
// -----
// CHECK: why: fft-C4: fft_length [8] is not the shape of the real operand
func.func @main(%x: tensor<9xf32>) -> tensor<5xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<9xf32>) -> tensor<5xcomplex<f32>>
  return %0 : tensor<5xcomplex<f32>>
}
