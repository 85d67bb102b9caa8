// RUN: gcomp opt %s -p fold-scales | filecheck %s

// What is scaled, and then divided by a scale and rounded, is scaled by their quotient.
// CHECK-LABEL: @main
func.func @main(%x: tensor<2x3xf32>, %r: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-DAG: [[A:%.*]] = stablehlo.constant dense<[0.5, 1.0, 2.0]>
  // CHECK-DAG: [[B:%.*]] = stablehlo.constant dense<3.0>
  // CHECK-NOT: stablehlo.divide
  // CHECK: stablehlo.round_nearest_even
  %a = stablehlo.constant dense<[1.0, 2.0, 4.0]> : tensor<3xf32>
  %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<2x3xf32>
  %b = stablehlo.constant dense<6.0> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %3 = stablehlo.multiply %r, %2 : tensor<2x3xf32>
  %4 = stablehlo.add %1, %3 : tensor<2x3xf32>
  %s = stablehlo.constant dense<2.0> : tensor<f32>
  %5 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %6 = stablehlo.divide %4, %5 : tensor<2x3xf32>
  %7 = stablehlo.round_nearest_even %6 : tensor<2x3xf32>
  return %7 : tensor<2x3xf32>
}

// What is not scaled is divided; so is what is divided by a number that is too small.
// CHECK-LABEL: @kept
func.func private @kept(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK-COUNT-2: stablehlo.divide
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = stablehlo.multiply %x, %a : tensor<2xf32>
  %1 = stablehlo.add %0, %y : tensor<2xf32>
  %s = stablehlo.constant dense<2.0> : tensor<2xf32>
  %2 = stablehlo.divide %1, %s : tensor<2xf32>
  %3 = stablehlo.round_nearest_even %2 : tensor<2xf32>
  %t = stablehlo.constant dense<1.0e-30> : tensor<2xf32>
  %4 = stablehlo.divide %0, %t : tensor<2xf32>
  %5 = stablehlo.round_nearest_even %4 : tensor<2xf32>
  return %3, %5 : tensor<2xf32>, tensor<2xf32>
}
