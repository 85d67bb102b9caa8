// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: rng-C2: a normal distribution needs floats
func.func @main(%low: tensor<i32>, %high: tensor<i32>, %shape: tensor<1xi64>) -> tensor<3xi32> {
  %0 = stablehlo.rng %low, %high, %shape, distribution = NORMAL : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}
// -----
// CHECK: why: rng_bit_generator-C2: THREE_FRY does not take a state of type tensor<3xui64>
func.func @main(%state: tensor<3xui64>) -> tensor<4xui32> {
  %0, %1 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return %1 : tensor<4xui32>
}
// -----
// CHECK: why: expected one of DEFAULT, THREE_FRY, PHILOX
func.func @main(%state: tensor<2xui64>) -> tensor<4xui32> {
  %0, %1 = stablehlo.rng_bit_generator %state, algorithm = MERSENNE : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return %1 : tensor<4xui32>
}
