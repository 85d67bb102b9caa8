// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: erf-I1: operand 0 has element type complex<f32>, which the op does not take
func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = chlo.erf %x : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}
// -----
// CHECK: why: next_after-C1: operands have types tensor<?xf32, ["n"]> and tensor<?xf32, ["m"]>
func.func @main(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]> {
  %0 = chlo.next_after %x, %y : tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]> -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
// -----
// CHECK: why: is_inf-C: result type is tensor<2xf32>, expected tensor<2xi1>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.is_inf %x : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
