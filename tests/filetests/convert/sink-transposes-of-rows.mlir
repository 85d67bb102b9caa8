// RUN: gcomp opt %s -p sink-transposes,canonicalize,sink-transposes,canonicalize | filecheck %s

// What makes rows of an image's positions, and an image of rows, needs no transpose.

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x4x6x3xf32>) -> tensor<2x8x3x3xf32> {
  // CHECK-NOT: stablehlo.transpose
  // CHECK: [[R:%.*]] = stablehlo.reshape %x : (tensor<2x4x6x3xf32>) -> tensor<2x24x3xf32>
  // CHECK: [[T:%.*]] = stablehlo.tanh [[R]] : tensor<2x24x3xf32>
  // CHECK: [[I:%.*]] = stablehlo.reshape [[T]] : (tensor<2x24x3xf32>) -> tensor<2x8x3x3xf32>
  // CHECK: return [[I]]
  %0 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x4x6x3xf32>) -> tensor<2x3x4x6xf32>
  %1 = stablehlo.reshape %0 : (tensor<2x3x4x6xf32>) -> tensor<2x3x24xf32>
  %2 = stablehlo.tanh %1 : tensor<2x3x24xf32>
  %3 = stablehlo.reshape %2 : (tensor<2x3x24xf32>) -> tensor<2x3x8x3xf32>
  %4 = stablehlo.transpose %3, dims = [0, 2, 3, 1] : (tensor<2x3x8x3xf32>) -> tensor<2x8x3x3xf32>
  return %4 : tensor<2x8x3x3xf32>
}
