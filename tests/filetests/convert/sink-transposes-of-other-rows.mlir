// RUN: gcomp opt %s -p sink-transposes | filecheck %s

// Rows of channels and positions together are no view of channels-last data: the transpose stays.

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x4x6x3xf32>) -> tensor<2x18x4xf32> {
  // CHECK: [[T:%.*]] = stablehlo.transpose %x
  // CHECK: [[R:%.*]] = stablehlo.reshape [[T]]
  // CHECK: return [[R]]
  %0 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x4x6x3xf32>) -> tensor<2x3x4x6xf32>
  %1 = stablehlo.reshape %0 : (tensor<2x3x4x6xf32>) -> tensor<2x18x4xf32>
  return %1 : tensor<2x18x4xf32>
}
