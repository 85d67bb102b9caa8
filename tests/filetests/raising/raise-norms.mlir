// RUN: gcomp opt %s -p "raise-norms" | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[R:%[0-9]+]], %{{.*}} = stablehlo.composite "gcomp.layer_norm" %x, %s, %b
  // CHECK: return [[R]]
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2x1xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2x1xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
  %2 = stablehlo.divide %1, %count : tensor<2x1xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<2x8xf32>
  %5 = stablehlo.multiply %4, %4 : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
  %8 = stablehlo.divide %7, %count : tensor<2x1xf32>
  %9 = stablehlo.add %8, %epsilon : tensor<2x1xf32>
  %10 = stablehlo.rsqrt %9 : tensor<2x1xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x8xf32>
  %12 = stablehlo.multiply %4, %11 : tensor<2x8xf32>
  %13 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %14 = stablehlo.multiply %12, %13 : tensor<2x8xf32>
  %15 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %16 = stablehlo.add %14, %15 : tensor<2x8xf32>
  return %16 : tensor<2x8xf32>
}

// What is added varies along the rows too: it is no bias.
// CHECK-LABEL: @residual
func.func private @residual(%x: tensor<2x8xf32>, %r: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[N:%.*]] = stablehlo.composite "gcomp.rms_norm" %x
  // CHECK: stablehlo.add [[N]], %r
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %5 = stablehlo.multiply %x, %x : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %8 = stablehlo.divide %6, %count : tensor<2xf32>
  %9 = stablehlo.add %8, %epsilon : tensor<2xf32>
  %10 = stablehlo.sqrt %9 : tensor<2xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %12 = stablehlo.divide %x, %11 : tensor<2x8xf32>
  %13 = stablehlo.add %12, %r : tensor<2x8xf32>
  return %13 : tensor<2x8xf32>
}

// The mean of 7 is not the mean of 8.
// CHECK-LABEL: @miscounted
func.func private @miscounted(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK-NOT: gcomp.rms_norm
  // CHECK: stablehlo.divide
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<7.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %5 = stablehlo.multiply %x, %x : tensor<2x8xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %8 = stablehlo.divide %6, %count : tensor<2xf32>
  %9 = stablehlo.add %8, %epsilon : tensor<2xf32>
  %10 = stablehlo.sqrt %9 : tensor<2xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %12 = stablehlo.divide %x, %11 : tensor<2x8xf32>
  return %12 : tensor<2x8xf32>
}
