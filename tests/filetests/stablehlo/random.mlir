// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%low: tensor<f32>, %high: tensor<f32>, %shape: tensor<2xi64>) -> tensor<?x4xf32, ["n", "4"]> {
  // CHECK-NEXT: %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<?x4xf32, ["n", "4"]>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<?x4xf32, ["n", "4"]>
  return %0 : tensor<?x4xf32, ["n", "4"]>
}

// CHECK-LABEL: func.func private @rng_bit_generator
func.func private @rng_bit_generator(%state: tensor<2xui64>) -> (tensor<2xui64>, tensor<?x4xui32, ["n", "4"]>) {
  // CHECK-NEXT: %0, %1 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<?x4xui32, ["n", "4"]>)
  %0, %1 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<?x4xui32, ["n", "4"]>)
  return %0, %1 : tensor<2xui64>, tensor<?x4xui32, ["n", "4"]>
}
