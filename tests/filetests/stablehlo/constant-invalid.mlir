// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: dense data of shape [3] does not fit tensor<2xf32>
func.func @main() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: dense data needs a tensor type of static shape
func.func @main() -> tensor<?xf32, ["n"]> {
  %0 = stablehlo.constant dense<1.0> : tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
// -----
// CHECK: why: iota-C1: iota_dimension is not a dimension of the result
func.func @main() -> tensor<2x3xi32> {
  %0 = stablehlo.iota dim = 2 : tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}
// -----
// CHECK: why: iota-I1: the result's elements are not numbers
func.func @main() -> tensor<3xi1> {
  %0 = stablehlo.iota dim = 0 : tensor<3xi1>
  return %0 : tensor<3xi1>
}
