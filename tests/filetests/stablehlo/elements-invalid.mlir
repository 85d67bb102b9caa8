// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: argument 0: complex<i4> is no element type: the parts of complex numbers are f32 or f64
// StableHLO has complex numbers of f32 and of f64 only.
func.func @main(%x: tensor<2xcomplex<i4>>) -> tensor<2xcomplex<i4>> {
  %0 = stablehlo.add %x, %x : tensor<2xcomplex<i4>>
  return %0 : tensor<2xcomplex<i4>>
}
// -----
// CHECK: why: argument 0: complex<i1> is no element type: the parts of complex numbers are f32 or f64
func.func @main(%x: tensor<2xcomplex<i1>>) -> tensor<2xcomplex<i1>> {
  return %x : tensor<2xcomplex<i1>>
}
// -----
// CHECK: why: argument 0: complex<f16> is no element type: the parts of complex numbers are f32 or f64
func.func @main(%x: tensor<2xcomplex<f16>>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: result 0: complex<i8> is no element type: the parts of complex numbers are f32 or f64
func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "f"} : (tensor<2xi8>) -> tensor<2xcomplex<i8>>
  return %x : tensor<2xi8>
}
// -----
// CHECK: why: argument 0: i3 is no element type
func.func @main(%x: tensor<2xi3>) -> tensor<2xi3> {
  %0 = stablehlo.add %x, %x : tensor<2xi3>
  return %0 : tensor<2xi3>
}
// -----
// CHECK: why: argument 0: i128 is no element type
func.func @main(%x: tensor<2xi128>) -> tensor<2xi128> {
  return %x : tensor<2xi128>
}
// -----
// CHECK: why: argument 0: vector<2xf32> is no element type
func.func @main(%x: tensor<2xvector<2xf32>>) -> tensor<2xvector<2xf32>> {
  return %x : tensor<2xvector<2xf32>>
}
// -----
// CHECK: why: argument 0: tf32 is no element type
func.func @main(%x: tensor<2xtf32>) -> tensor<2xtf32> {
  return %x : tensor<2xtf32>
}
