// RUN: gcomp opt %s -p sink-transposes,canonicalize | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<1x5x5x2xf32>, %b: tensor<2xf32>) -> tensor<1x2xf32> {
  // CHECK-NOT: stablehlo.transpose %x
  // CHECK: [[B:%.*]] = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<2xf32>) -> tensor<1x5x5x2xf32>
  // CHECK: [[A:%.*]] = stablehlo.add %x, [[B]] : tensor<1x5x5x2xf32>
  // CHECK: stablehlo.reduce([[A]] init: {{.*}}) applies stablehlo.add across dimensions = [1, 2]
  // CHECK-NOT: stablehlo.transpose
  // CHECK: return
  %0 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<1x5x5x2xf32>) -> tensor<1x2x5x5xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2xf32>) -> tensor<1x2x5x5xf32>
  %2 = stablehlo.add %0, %1 : tensor<1x2x5x5xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [2, 3] : (tensor<1x2x5x5xf32>, tensor<f32>) -> tensor<1x2xf32>
  return %3 : tensor<1x2xf32>
}
