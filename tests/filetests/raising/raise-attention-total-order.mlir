// RUN: gcomp opt %s -p "raise-softmax,raise-attention" --check-each | filecheck %s

// In the total order NaN is itself: no weight is made 0, and the selection is no guard.
// CHECK-LABEL: @main
// CHECK: stablehlo.composite "gcomp.softmax"
// CHECK-NOT: gcomp.attention
func.func @main(%q: tensor<2x3x4xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %m = stablehlo.reduce(%s init: %i) applies stablehlo.maximum across dimensions = [2] : (tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x3xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x3x3xf32>
  %e = stablehlo.exponential %d : tensor<2x3x3xf32>
  %t = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : (tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x3xf32>
  %w = stablehlo.divide %e, %tb : tensor<2x3x3xf32>
  %n = stablehlo.compare NE, %w, %w, TOTALORDER : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xi1>
  %0 = stablehlo.constant dense<0.0> : tensor<2x3x3xf32>
  %g = stablehlo.select %n, %0, %w : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %r = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %r : tensor<2x3x4xf32>
}
