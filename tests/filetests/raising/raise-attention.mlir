// RUN: gcomp opt %s -p "raise-softmax,raise-attention" | filecheck %s

// Heads after the sequence, a mask that selects, and the values on the left, as einsum traces.
// CHECK-LABEL: @main
func.func @main(%q: tensor<2x5x4x8xf32>, %k: tensor<2x7x4x8xf32>, %v: tensor<2x7x4x8xf32>, %m: tensor<5x7xi1>) -> tensor<2x4x8x5xf32> {
  // CHECK: [[Q:%.*]] = stablehlo.transpose %q, dims = [0, 2, 1, 3]
  // CHECK: [[K:%.*]] = stablehlo.transpose %k, dims = [0, 2, 1, 3]
  // CHECK: [[V:%.*]] = stablehlo.transpose %v, dims = [0, 2, 1, 3]
  // CHECK: [[M:%.*]] = stablehlo.reshape %m
  // CHECK: [[R:%.*]] = stablehlo.composite "gcomp.attention" [[Q]], [[K]], [[V]], [[M]] {{.*}}scale = 5.000000e-01 : f64, fill = -1.000000e+09 : f64
  // CHECK: [[T:%.*]] = stablehlo.transpose [[R]], dims = [0, 1, 3, 2]
  // CHECK: return [[T]]
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x5x4x8xf32>, tensor<2x7x4x8xf32>) -> tensor<2x4x5x7xf32>
  %two = stablehlo.constant dense<2.0> : tensor<2x4x5x7xf32>
  %1 = stablehlo.divide %0, %two : tensor<2x4x5x7xf32>
  %fill = stablehlo.constant dense<-1.0e+09> : tensor<2x4x5x7xf32>
  %2 = stablehlo.broadcast_in_dim %m, dims = [2, 3] : (tensor<5x7xi1>) -> tensor<2x4x5x7xi1>
  %3 = stablehlo.select %2, %1, %fill : tensor<2x4x5x7xi1>, tensor<2x4x5x7xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%3 init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x7xf32>
  %6 = stablehlo.subtract %3, %5 : tensor<2x4x5x7xf32>
  %7 = stablehlo.exponential %6 : tensor<2x4x5x7xf32>
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x7xf32>
  %10 = stablehlo.divide %7, %9 : tensor<2x4x5x7xf32>
  %11 = stablehlo.dot_general %v, %10, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<2x7x4x8xf32>, tensor<2x4x5x7xf32>) -> tensor<2x4x8x5xf32>
  return %11 : tensor<2x4x8x5xf32>
}
