// RUN: gcomp opt %s -p sink-transposes | filecheck %s

// Views of sequences and of volumes sink as those of images do.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x5x2xf32>, %y: tensor<1x3x4x5x2xf32>) -> (tensor<1x2x5xf32>, tensor<1x2x3x4x5xf32>) {
  // CHECK: [[A:%.*]] = stablehlo.abs %x : tensor<1x5x2xf32>
  // CHECK: [[T:%.*]] = stablehlo.transpose [[A]], dims = [0, 2, 1]
  // CHECK: [[B:%.*]] = stablehlo.abs %y : tensor<1x3x4x5x2xf32>
  // CHECK: [[U:%.*]] = stablehlo.transpose [[B]], dims = [0, 4, 1, 2, 3]
  // CHECK: return [[T]], [[U]]
  %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<1x5x2xf32>) -> tensor<1x2x5xf32>
  %1 = stablehlo.abs %0 : tensor<1x2x5xf32>
  %2 = stablehlo.transpose %y, dims = [0, 4, 1, 2, 3] : (tensor<1x3x4x5x2xf32>) -> tensor<1x2x3x4x5xf32>
  %3 = stablehlo.abs %2 : tensor<1x2x3x4x5xf32>
  return %1, %3 : tensor<1x2x5xf32>, tensor<1x2x3x4x5xf32>
}

// A transpose of a matrix is no such view, nor is another permutation.
// CHECK-LABEL: @others
func.func private @others(%x: tensor<5x2xf32>, %y: tensor<1x4x5x2xf32>) -> (tensor<2x5xf32>, tensor<1x5x2x4xf32>) {
  // CHECK: stablehlo.transpose %x
  // CHECK-NEXT: stablehlo.abs
  // CHECK: stablehlo.transpose %y
  // CHECK-NEXT: stablehlo.abs
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<5x2xf32>) -> tensor<2x5xf32>
  %1 = stablehlo.abs %0 : tensor<2x5xf32>
  %2 = stablehlo.transpose %y, dims = [0, 2, 3, 1] : (tensor<1x4x5x2xf32>) -> tensor<1x5x2x4xf32>
  %3 = stablehlo.abs %2 : tensor<1x5x2x4xf32>
  return %1, %3 : tensor<2x5xf32>, tensor<1x5x2x4xf32>
}
