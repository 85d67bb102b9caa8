// RUN: gcomp opt %s -p sink-transposes --check-each | filecheck %s

// A view of what costs nothing to transpose stays: at rank 3 it would change places with its neighbour for ever.
// CHECK-LABEL: @main
func.func @main() -> tensor<2x1x3xf32> {
  // CHECK: stablehlo.transpose
  // CHECK: stablehlo.power
  // CHECK-NOT: stablehlo.transpose
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3x1xf32>
  %2 = stablehlo.transpose %1, dims = [0, 2, 1] : (tensor<2x3x1xf32>) -> tensor<2x1x3xf32>
  %3 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x1x3xf32>
  %4 = stablehlo.power %2, %3 : tensor<2x1x3xf32>
  return %4 : tensor<2x1x3xf32>
}
