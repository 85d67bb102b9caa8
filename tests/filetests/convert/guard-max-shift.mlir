// RUN: gcomp opt %s -p guard-max-shift | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // CHECK: [[P:%.*]] = stablehlo.multiply
  // CHECK: [[TOP:%.*]] = stablehlo.broadcast_in_dim
  // CHECK: [[BOUND:%.*]] = stablehlo.minimum [[P]], [[TOP]]
  // CHECK: stablehlo.subtract [[BOUND]], [[TOP]]
  %p = stablehlo.multiply %x, %y : tensor<2x3xf32>
  %m = stablehlo.reduce(%p init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %t = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %s = stablehlo.subtract %p, %t : tensor<2x3xf32>
  // What is no product stays as it is.
  // CHECK-NOT: stablehlo.minimum
  %n = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %u = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %v = stablehlo.subtract %x, %u : tensor<2x3xf32>
  return %s, %v : tensor<2x3xf32>, tensor<2x3xf32>
}

// So does what is shifted by the maximum of something else.
// CHECK-LABEL: @other
func.func private @other(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NOT: stablehlo.minimum
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %p = stablehlo.multiply %x, %y : tensor<2x3xf32>
  %m = stablehlo.reduce(%y init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %t = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
  %s = stablehlo.subtract %p, %t : tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}
