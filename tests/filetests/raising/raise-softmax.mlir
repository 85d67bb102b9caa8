// RUN: gcomp opt %s -p "raise-softmax" | filecheck %s

// As jax.nn.softmax traces: the maximum is joined with -inf.
// CHECK-LABEL: @main
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[R:%.*]] = stablehlo.composite "gcomp.softmax" %x {decomposition = @gcomp.softmax.{{[0-9]}}, composite_attributes = {axis = 1 : i64}}
  // CHECK: return [[R]]
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<2xf32>
  %2 = stablehlo.maximum %1, %0 : tensor<2xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<2x8xf32>
  %5 = stablehlo.exponential %4 : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %7 = stablehlo.reshape %6 : (tensor<2xf32>) -> tensor<2x1xf32>
  %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %9 = stablehlo.divide %5, %8 : tensor<2x8xf32>
  return %9 : tensor<2x8xf32>
}

// Without the maximum, exponentials overflow where those of a softmax do not.
// CHECK-LABEL: @unshifted
func.func private @unshifted(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK-NOT: gcomp.softmax
  // CHECK: stablehlo.divide
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %5 = stablehlo.exponential %x : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %8 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %9 = stablehlo.divide %5, %8 : tensor<2x8xf32>
  return %9 : tensor<2x8xf32>
}

// The sum goes along the dimension of the maximum, or it is no softmax; on a square, only the places tell.
// CHECK-LABEL: @other_axis
func.func private @other_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NOT: gcomp.softmax
  // CHECK: stablehlo.divide
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<8x8xf32>
  %5 = stablehlo.exponential %4 : tensor<8x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %8 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %9 = stablehlo.divide %5, %8 : tensor<8x8xf32>
  return %9 : tensor<8x8xf32>
}

// CHECK-LABEL: @logarithm
func.func private @logarithm(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[R:%.*]] = stablehlo.composite "gcomp.log_softmax" %x {{.*}}axis = 1
  // CHECK: return [[R]]
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<2x8xf32>
  %3 = stablehlo.exponential %2 : tensor<2x8xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %5 = stablehlo.log %4 : tensor<2xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %7 = stablehlo.subtract %2, %6 : tensor<2x8xf32>
  return %7 : tensor<2x8xf32>
}
