// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: add-C1: operands have types tensor<?xf32, ["n"]> and tensor<?xf32, ["m"]>
// Two sizes are the same only when their formulas are.
func.func @main(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]> {
  %0 = stablehlo.add %x, %y : (tensor<?xf32, ["n"]>, tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
// -----
// CHECK: why: sine-I1: operand 0 has element type i32, which the op does not take
func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.sine %x : tensor<2xi32>
  return %0 : tensor<2xi32>
}
// -----
// CHECK: why: sine-I1: operand 0: dimension '1 + n' is not canonical, write 'n + 1'
// A dimension has one spelling.
func.func @main(%x: tensor<?xf32, ["1 + n"]>) -> tensor<?xf32, ["1 + n"]> {
  %0 = stablehlo.sine %x : tensor<?xf32, ["1 + n"]>
  return %0 : tensor<?xf32, ["1 + n"]>
}
// -----
// CHECK: why: compare-C4: complex numbers compare with EQ and NE only
func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xi1> {
  %0 = stablehlo.compare LT, %x, %x : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}
// -----
// CHECK: why: select-C1: the predicate has neither rank 0 nor the branches' shape
func.func @main(%p: tensor<3xi1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.select %p, %x, %x : tensor<3xi1>, tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: clamp-C3: a bound has another element type than the operand
func.func @main(%x: tensor<2xf32>, %y: tensor<f64>) -> tensor<2xf32> {
  %0 = stablehlo.clamp %y, %x, %y : (tensor<f64>, tensor<2xf32>, tensor<f64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
