// RUN: gcomp opt %s -p quantized-values-in-f32 | filecheck %s

// Rounded, moved by a zero point and clamped: what is converted to 8 bits is what comes back.
// CHECK-LABEL: @main
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // CHECK: [[Q:%.*]] = stablehlo.select
  // CHECK-NEXT: return [[Q]]
  %0 = stablehlo.round_nearest_even %x : tensor<3x4xf32>
  %1 = stablehlo.constant dense<7> : tensor<ui8>
  %2 = stablehlo.convert %1 : (tensor<ui8>) -> tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
  %4 = stablehlo.add %0, %3 : tensor<3x4xf32>
  %5 = stablehlo.constant dense<0.0> : tensor<3x4xf32>
  %6 = stablehlo.constant dense<255.0> : tensor<3x4xf32>
  %7 = stablehlo.compare GE, %4, %5 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
  %8 = stablehlo.minimum %4, %6 : tensor<3x4xf32>
  %9 = stablehlo.select %7, %8, %5 : tensor<3x4xi1>, tensor<3x4xf32>
  %10 = stablehlo.convert %9 : (tensor<3x4xf32>) -> tensor<3x4xui8>
  %11 = stablehlo.convert %10 : (tensor<3x4xui8>) -> tensor<3x4xf32>
  return %11 : tensor<3x4xf32>
}

// Integers that were converted are as good as rounded numbers, and so are their sums.
// CHECK-LABEL: @integers
func.func private @integers(%x: tensor<4xi8>, %y: tensor<4xui8>) -> tensor<4xf32> {
  // CHECK: [[Q:%.*]] = stablehlo.select
  // CHECK-NEXT: return [[Q]]
  %0 = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xf32>
  %1 = stablehlo.convert %y : (tensor<4xui8>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %5 = stablehlo.constant dense<0.0> : tensor<4xf32>
  %6 = stablehlo.constant dense<255.0> : tensor<4xf32>
  %7 = stablehlo.compare GE, %2, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %8 = stablehlo.minimum %2, %6 : tensor<4xf32>
  %9 = stablehlo.select %7, %8, %5 : tensor<4xi1>, tensor<4xf32>
  %10 = stablehlo.convert %9 : (tensor<4xf32>) -> tensor<4xui8>
  %11 = stablehlo.convert %10 : (tensor<4xui8>) -> tensor<4xf32>
  return %11 : tensor<4xf32>
}

// Not rounded: the conversion to 8 bits drops fractions.
// CHECK-LABEL: @fractions
func.func private @fractions(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: stablehlo.convert {{.*}} -> tensor<4xui8>
  %5 = stablehlo.constant dense<0.0> : tensor<4xf32>
  %6 = stablehlo.constant dense<255.0> : tensor<4xf32>
  %7 = stablehlo.compare GE, %x, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %8 = stablehlo.minimum %x, %6 : tensor<4xf32>
  %9 = stablehlo.select %7, %8, %5 : tensor<4xi1>, tensor<4xf32>
  %10 = stablehlo.convert %9 : (tensor<4xf32>) -> tensor<4xui8>
  %11 = stablehlo.convert %10 : (tensor<4xui8>) -> tensor<4xf32>
  return %11 : tensor<4xf32>
}

// Clamped to more than the type holds: the conversion clamps again.
// CHECK-LABEL: @wider
func.func private @wider(%y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: stablehlo.convert {{.*}} -> tensor<4xi8>
  %x = stablehlo.round_nearest_even %y : tensor<4xf32>
  %5 = stablehlo.constant dense<-128.0> : tensor<4xf32>
  %6 = stablehlo.constant dense<128.0> : tensor<4xf32>
  %7 = stablehlo.compare GE, %x, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %8 = stablehlo.minimum %x, %6 : tensor<4xf32>
  %9 = stablehlo.select %7, %8, %5 : tensor<4xi1>, tensor<4xf32>
  %10 = stablehlo.convert %9 : (tensor<4xf32>) -> tensor<4xi8>
  %11 = stablehlo.convert %10 : (tensor<4xi8>) -> tensor<4xf32>
  return %11 : tensor<4xf32>
}
