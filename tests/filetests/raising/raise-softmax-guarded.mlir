// RUN: gcomp opt %s -p "raise-softmax" | filecheck %s

// A maximum that is 0 where it is not finite, as jax.nn.logsumexp has it.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[R:%.*]] = stablehlo.composite "gcomp.softmax" %x
  // CHECK: return [[R]]
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.is_finite %0 : (tensor<2xf32>) -> tensor<2xi1>
  %2 = stablehlo.select %1, %0, %zeros : tensor<2xi1>, tensor<2xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<2x8xf32>
  %5 = stablehlo.exponential %4 : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %8 = stablehlo.divide %5, %7 : tensor<2x8xf32>
  return %8 : tensor<2x8xf32>
}

// Another number than 0, or another value that is tested, is another function.
// CHECK-LABEL: func.func private @others
func.func private @others(%x: tensor<2x8xf32>, %y: tensor<2xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  // CHECK-NOT: gcomp.softmax
  // CHECK: return
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<2xf32>
  %ones = stablehlo.constant dense<-1.0> : tensor<2xf32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.is_finite %0 : (tensor<2xf32>) -> tensor<2xi1>
  %2 = stablehlo.select %1, %0, %ones : tensor<2xi1>, tensor<2xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<2x8xf32>
  %5 = stablehlo.exponential %4 : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %8 = stablehlo.divide %5, %7 : tensor<2x8xf32>
  %9 = stablehlo.is_finite %y : (tensor<2xf32>) -> tensor<2xi1>
  %10 = stablehlo.select %9, %0, %zeros : tensor<2xi1>, tensor<2xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %12 = stablehlo.subtract %x, %11 : tensor<2x8xf32>
  %13 = stablehlo.exponential %12 : tensor<2x8xf32>
  %14 = stablehlo.reduce(%13 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %15 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %16 = stablehlo.divide %13, %15 : tensor<2x8xf32>
  return %8, %16 : tensor<2x8xf32>, tensor<2x8xf32>
}

// The logarithm of the sum, with the maximum added again.
// CHECK-LABEL: func.func private @sum
func.func private @sum(%x: tensor<2x8xf32>) -> tensor<2xf32> {
  // CHECK: [[S:%.*]] = stablehlo.composite "gcomp.logsumexp" %x {{.*}}axis = 1
  // CHECK: [[R:%.*]] = stablehlo.reshape [[S]]
  // CHECK: return [[R]]
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.is_finite %0 : (tensor<2xf32>) -> tensor<2xi1>
  %2 = stablehlo.select %1, %0, %zeros : tensor<2xi1>, tensor<2xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<2x8xf32>
  %5 = stablehlo.exponential %4 : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %7 = stablehlo.log %6 : tensor<2xf32>
  %8 = stablehlo.add %7, %2 : tensor<2xf32>
  return %8 : tensor<2xf32>
}

// What is added is not the maximum that was subtracted; what is summed are no exponentials.
// CHECK-LABEL: func.func private @other_sums
func.func private @other_sums(%x: tensor<2x8xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK-NOT: gcomp.logsumexp
  // CHECK: return
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.is_finite %0 : (tensor<2xf32>) -> tensor<2xi1>
  %2 = stablehlo.select %1, %0, %zeros : tensor<2xi1>, tensor<2xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<2x8xf32>
  %5 = stablehlo.exponential %4 : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %7 = stablehlo.log %6 : tensor<2xf32>
  %8 = stablehlo.add %7, %y : tensor<2xf32>
  %9 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %10 = stablehlo.log %9 : tensor<2xf32>
  %11 = stablehlo.add %10, %2 : tensor<2xf32>
  return %8, %11 : tensor<2xf32>, tensor<2xf32>
}

// Along two dimensions it is no composite.
// CHECK-LABEL: func.func private @both
func.func private @both(%x: tensor<2x8xf32>) -> tensor<f32> {
  // CHECK-NOT: gcomp.logsumexp
  // CHECK: return
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.is_finite %0 : (tensor<f32>) -> tensor<i1>
  %2 = stablehlo.select %1, %0, %zero : tensor<i1>, tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<2x8xf32>
  %5 = stablehlo.exponential %4 : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<f32>
  %7 = stablehlo.log %6 : tensor<f32>
  %8 = stablehlo.add %7, %2 : tensor<f32>
  return %8 : tensor<f32>
}
