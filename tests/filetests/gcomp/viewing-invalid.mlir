// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: view_as_real-I1: operand 0 has element type f32
func.func @main(%x: tensor<4xf32>) -> tensor<4x2xf32> {
  %0 = gcomp.view_as_real %x : (tensor<4xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
// -----
// CHECK: why: view_as_complex-C1: the last dimension of tensor<4x3xf32> does not hold pairs
func.func @main(%x: tensor<4x3xf32>) -> tensor<4xcomplex<f32>> {
  %0 = gcomp.view_as_complex %x : (tensor<4x3xf32>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
// -----
// CHECK: why: view_as_complex-C1:
func.func @main(%x: tensor<f32>) -> tensor<complex<f32>> {
  %0 = gcomp.view_as_complex %x : (tensor<f32>) -> tensor<complex<f32>>
  return %0 : tensor<complex<f32>>
}
// -----
// CHECK: why: view_as_complex-I1: operand 0 has element type f16
func.func @main(%x: tensor<4x2xf16>) -> tensor<4xcomplex<f32>> {
  %0 = gcomp.view_as_complex %x : (tensor<4x2xf16>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
