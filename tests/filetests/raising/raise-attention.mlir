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

// A dimension of size 1 comes before the softmax and goes after it; the mask varies along queries and keys.
// CHECK-LABEL: @of_one
func.func private @of_one(%q: tensor<4x5x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>, %m: tensor<1x1x5x7xf32>) -> tensor<4x5x8xf32> {
  // CHECK: stablehlo.composite "gcomp.attention"
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = stablehlo.reshape %0 : (tensor<4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %2 = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2, 3] : (tensor<1x1x5x7xf32>) -> tensor<1x4x5x7xf32>
  %3 = stablehlo.add %1, %2 : tensor<1x4x5x7xf32>
  %a = stablehlo.reduce(%3 init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x5x7xf32>, tensor<f32>) -> tensor<1x4x5xf32>
  %b = stablehlo.broadcast_in_dim %a, dims = [0, 1, 2] : (tensor<1x4x5xf32>) -> tensor<1x4x5x7xf32>
  %c = stablehlo.subtract %3, %b : tensor<1x4x5x7xf32>
  %d = stablehlo.exponential %c : tensor<1x4x5x7xf32>
  %e = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<1x4x5x7xf32>, tensor<f32>) -> tensor<1x4x5xf32>
  %f = stablehlo.broadcast_in_dim %e, dims = [0, 1, 2] : (tensor<1x4x5xf32>) -> tensor<1x4x5x7xf32>
  %g = stablehlo.divide %d, %f : tensor<1x4x5x7xf32>
  %4 = stablehlo.reshape %g : (tensor<1x4x5x7xf32>) -> tensor<4x5x7xf32>
  %5 = stablehlo.dot_general %4, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %5 : tensor<4x5x8xf32>
}

// A mask that varies along a dimension of the batch and along the keys.
// CHECK-LABEL: @batches
func.func private @batches(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>, %m: tensor<2x1x1x7xf32>) -> tensor<2x4x5x8xf32> {
  // CHECK: [[M:%.*]] = stablehlo.reshape {{.*}} -> tensor<2x1x1x7xf32>
  // CHECK: stablehlo.composite "gcomp.attention" %q, %k, %v, [[M]] {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x4x5x8xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32>
  %2 = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2, 3] : (tensor<2x1x1x7xf32>) -> tensor<2x4x5x7xf32>
  %3 = stablehlo.add %0, %2 : tensor<2x4x5x7xf32>
  %a = stablehlo.reduce(%3 init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5xf32>
  %b = stablehlo.broadcast_in_dim %a, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x7xf32>
  %c = stablehlo.subtract %3, %b : tensor<2x4x5x7xf32>
  %d = stablehlo.exponential %c : tensor<2x4x5x7xf32>
  %e = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<2x4x5x7xf32>, tensor<f32>) -> tensor<2x4x5xf32>
  %f = stablehlo.broadcast_in_dim %e, dims = [0, 1, 2] : (tensor<2x4x5xf32>) -> tensor<2x4x5x7xf32>
  %g = stablehlo.divide %d, %f : tensor<2x4x5x7xf32>
  %5 = stablehlo.dot_general %g, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x5x7xf32>, tensor<2x4x7x8xf32>) -> tensor<2x4x5x8xf32>
  return %5 : tensor<2x4x5x8xf32>
}

// One query for each head has no dimension of its own: it is left alone.
// CHECK-LABEL: @one_query
func.func private @one_query(%q: tensor<4x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: gcomp.attention
  // CHECK: stablehlo.composite "gcomp.softmax"
  // CHECK: stablehlo.dot_general
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [1] x [2] : (tensor<4x8xf32>, tensor<4x7x8xf32>) -> tensor<4x7xf32>
  %a = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4x7xf32>, tensor<f32>) -> tensor<4xf32>
  %b = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4xf32>) -> tensor<4x7xf32>
  %c = stablehlo.subtract %0, %b : tensor<4x7xf32>
  %d = stablehlo.exponential %c : tensor<4x7xf32>
  %e = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x7xf32>, tensor<f32>) -> tensor<4xf32>
  %f = stablehlo.broadcast_in_dim %e, dims = [0] : (tensor<4xf32>) -> tensor<4x7xf32>
  %g = stablehlo.divide %d, %f : tensor<4x7xf32>
  %5 = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x7xf32>, tensor<4x7x8xf32>) -> tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

// Scores that no product makes.
// CHECK-LABEL: @given
func.func private @given(%s: tensor<4x5x7xf32>, %v: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  // CHECK-NOT: gcomp.attention
  // CHECK: stablehlo.composite "gcomp.softmax"
  // CHECK: stablehlo.dot_general
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<4x5x7xf32>, tensor<f32>) -> tensor<4x5xf32>
  %b = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<4x5xf32>) -> tensor<4x5x7xf32>
  %c = stablehlo.subtract %s, %b : tensor<4x5x7xf32>
  %d = stablehlo.exponential %c : tensor<4x5x7xf32>
  %e = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x5x7xf32>, tensor<f32>) -> tensor<4x5xf32>
  %f = stablehlo.broadcast_in_dim %e, dims = [0, 1] : (tensor<4x5xf32>) -> tensor<4x5x7xf32>
  %g = stablehlo.divide %d, %f : tensor<4x5x7xf32>
  %5 = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %5 : tensor<4x5x8xf32>
}

// And a selection of them.
// CHECK-LABEL: @given_selected
func.func private @given_selected(%s: tensor<4x5x7xf32>, %v: tensor<4x7x8xf32>, %m: tensor<4x5x7xi1>) -> tensor<4x5x8xf32> {
  // CHECK-NOT: gcomp.attention
  // CHECK: stablehlo.composite "gcomp.softmax"
  // CHECK: stablehlo.dot_general
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %fill = stablehlo.constant dense<-1.0e+09> : tensor<4x5x7xf32>
  %0 = stablehlo.select %m, %s, %fill : tensor<4x5x7xi1>, tensor<4x5x7xf32>
  %a = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<4x5x7xf32>, tensor<f32>) -> tensor<4x5xf32>
  %b = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<4x5xf32>) -> tensor<4x5x7xf32>
  %c = stablehlo.subtract %0, %b : tensor<4x5x7xf32>
  %d = stablehlo.exponential %c : tensor<4x5x7xf32>
  %e = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x5x7xf32>, tensor<f32>) -> tensor<4x5xf32>
  %f = stablehlo.broadcast_in_dim %e, dims = [0, 1] : (tensor<4x5xf32>) -> tensor<4x5x7xf32>
  %g = stablehlo.divide %d, %f : tensor<4x5x7xf32>
  %5 = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %5 : tensor<4x5x8xf32>
}

// One head.
// CHECK-LABEL: @one_head
func.func private @one_head(%q: tensor<5x8xf32>, %k: tensor<7x8xf32>, %v: tensor<7x8xf32>) -> tensor<5x8xf32> {
  // CHECK: [[A:%.*]] = stablehlo.composite "gcomp.attention" %q, %k, %v
  // CHECK: return [[A]]
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<5x8xf32>, tensor<7x8xf32>) -> tensor<5x7xf32>
  %a = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
  %b = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<5xf32>) -> tensor<5x7xf32>
  %c = stablehlo.subtract %0, %b : tensor<5x7xf32>
  %d = stablehlo.exponential %c : tensor<5x7xf32>
  %e = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
  %f = stablehlo.broadcast_in_dim %e, dims = [0] : (tensor<5xf32>) -> tensor<5x7xf32>
  %g = stablehlo.divide %d, %f : tensor<5x7xf32>
  %1 = stablehlo.dot_general %g, %v, contracting_dims = [1] x [0] : (tensor<5x7xf32>, tensor<7x8xf32>) -> tensor<5x8xf32>
  return %1 : tensor<5x8xf32>
}

// Queries and keys are each multiplied by the root of the scale; a factor that is far from 1 stays.
// CHECK-LABEL: @scaled_apart
func.func private @scaled_apart(%q: tensor<4x5x8xf32>, %k: tensor<4x7x8xf32>, %v: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  // CHECK: [[FAR:%.*]] = stablehlo.multiply %k,
  // CHECK: stablehlo.composite "gcomp.attention" %q, [[FAR]], %v {{.*}}scale = 1.250000e-01 : f64
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<4x5x8xf32>
  %far = stablehlo.constant dense<1000.0> : tensor<4x7x8xf32>
  %quarter = stablehlo.constant dense<0.25> : tensor<4x7x8xf32>
  %qs = stablehlo.multiply %q, %half : tensor<4x5x8xf32>
  %kf = stablehlo.multiply %k, %far : tensor<4x7x8xf32>
  %ks = stablehlo.multiply %quarter, %kf : tensor<4x7x8xf32>
  %0 = stablehlo.dot_general %qs, %ks, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x5x8xf32>, tensor<4x7x8xf32>) -> tensor<4x5x7xf32>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<4x5x7xf32>, tensor<f32>) -> tensor<4x5xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<4x5xf32>) -> tensor<4x5x7xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<4x5x7xf32>
  %4 = stablehlo.exponential %3 : tensor<4x5x7xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x5x7xf32>, tensor<f32>) -> tensor<4x5xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x5xf32>) -> tensor<4x5x7xf32>
  %7 = stablehlo.divide %4, %6 : tensor<4x5x7xf32>
  %8 = stablehlo.dot_general %7, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x5x7xf32>, tensor<4x7x8xf32>) -> tensor<4x5x8xf32>
  return %8 : tensor<4x5x8xf32>
}
