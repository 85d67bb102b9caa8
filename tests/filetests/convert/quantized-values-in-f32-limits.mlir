// RUN: gcomp opt %s -p quantized-values-in-f32 | filecheck %s

// Limits are seen through broadcasts and reshapes, and in either order of the minimum.
// CHECK-LABEL: @main
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // CHECK: [[Q:%.*]] = stablehlo.select
  // CHECK-NEXT: return [[Q]]
  %0 = stablehlo.round_nearest_even %x : tensor<3x4xf32>
  %l = stablehlo.constant dense<-128.0> : tensor<1xf32>
  %m = stablehlo.reshape %l : (tensor<1xf32>) -> tensor<f32>
  %low = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
  %h = stablehlo.constant dense<127.0> : tensor<f32>
  %high = stablehlo.broadcast_in_dim %h, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
  %1 = stablehlo.compare GE, %0, %low : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
  %2 = stablehlo.minimum %high, %0 : tensor<3x4xf32>
  %3 = stablehlo.select %1, %2, %low : tensor<3x4xi1>, tensor<3x4xf32>
  %4 = stablehlo.convert %3 : (tensor<3x4xf32>) -> tensor<3x4xi8>
  %5 = stablehlo.convert %4 : (tensor<3x4xi8>) -> tensor<3x4xf32>
  return %5 : tensor<3x4xf32>
}

// Limits that nobody knows.
// CHECK-LABEL: @unknown
func.func private @unknown(%x: tensor<4xf32>, %low: tensor<4xf32>, %high: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: stablehlo.convert {{.*}} -> tensor<4xi8>
  %0 = stablehlo.round_nearest_even %x : tensor<4xf32>
  %1 = stablehlo.compare GE, %0, %low : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = stablehlo.minimum %0, %high : tensor<4xf32>
  %3 = stablehlo.select %1, %2, %low : tensor<4xi1>, tensor<4xf32>
  %4 = stablehlo.convert %3 : (tensor<4xf32>) -> tensor<4xi8>
  %5 = stablehlo.convert %4 : (tensor<4xi8>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}

// Limits that are not the same everywhere are no limits.
// CHECK-LABEL: @varying
func.func private @varying(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK: stablehlo.convert {{.*}} -> tensor<2xi8>
  %0 = stablehlo.round_nearest_even %x : tensor<2xf32>
  %low = stablehlo.constant dense<0.0> : tensor<2xf32>
  %high = stablehlo.constant dense<[100.0, 200.0]> : tensor<2xf32>
  %1 = stablehlo.compare GE, %0, %low : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %2 = stablehlo.minimum %0, %high : tensor<2xf32>
  %3 = stablehlo.select %1, %2, %low : tensor<2xi1>, tensor<2xf32>
  %4 = stablehlo.convert %3 : (tensor<2xf32>) -> tensor<2xi8>
  %5 = stablehlo.convert %4 : (tensor<2xi8>) -> tensor<2xf32>
  return %5 : tensor<2xf32>
}

// A zero point that is a constant of whole numbers may be added; a fraction may not.
// CHECK-LABEL: @moved
func.func private @moved(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[Q:%.*]] = stablehlo.select
  // CHECK-NOT: stablehlo.convert [[Q]]
  // CHECK: [[R:%.*]] = stablehlo.select
  // CHECK-NEXT: [[I:%.*]] = stablehlo.convert [[R]] : (tensor<4xf32>) -> tensor<4xui8>
  // CHECK-NEXT: [[F:%.*]] = stablehlo.convert [[I]]
  // CHECK-NEXT: return [[Q]], [[F]]
  %low = stablehlo.constant dense<0.0> : tensor<4xf32>
  %high = stablehlo.constant dense<255.0> : tensor<4xf32>
  %r = stablehlo.round_nearest_even %x : tensor<4xf32>
  %z = stablehlo.constant dense<3.0> : tensor<4xf32>
  %0 = stablehlo.add %r, %z : tensor<4xf32>
  %1 = stablehlo.compare GE, %0, %low : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = stablehlo.minimum %0, %high : tensor<4xf32>
  %3 = stablehlo.select %1, %2, %low : tensor<4xi1>, tensor<4xf32>
  %4 = stablehlo.convert %3 : (tensor<4xf32>) -> tensor<4xui8>
  %5 = stablehlo.convert %4 : (tensor<4xui8>) -> tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %6 = stablehlo.add %r, %half : tensor<4xf32>
  %7 = stablehlo.compare GE, %6, %low : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %8 = stablehlo.minimum %6, %high : tensor<4xf32>
  %9 = stablehlo.select %7, %8, %low : tensor<4xi1>, tensor<4xf32>
  %10 = stablehlo.convert %9 : (tensor<4xf32>) -> tensor<4xui8>
  %11 = stablehlo.convert %10 : (tensor<4xui8>) -> tensor<4xf32>
  return %5, %11 : tensor<4xf32>, tensor<4xf32>
}
