// RUN: gcomp opt %s -p quantized-products | filecheck %s

// So many products of differences as 32 bits hold for certain, (2**31 - 1) // 255**2, and one more.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x33025xui8>, %w: tensor<33025x2xui8>) -> tensor<2x2xf32> {
  // CHECK: stablehlo.dot_general {{.*}} : (tensor<2x33025xi32>,
  %s = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.convert %x : (tensor<2x33025xui8>) -> tensor<2x33025xf32>
  %1 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2x33025xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<2x33025xf32>
  %3 = stablehlo.convert %w : (tensor<33025x2xui8>) -> tensor<33025x2xf32>
  %4 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<33025x2xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<33025x2xf32>
  %6 = stablehlo.dot_general %2, %5, contracting_dims = [1] x [0] : (tensor<2x33025xf32>, tensor<33025x2xf32>) -> tensor<2x2xf32>
  return %6 : tensor<2x2xf32>
}
// CHECK-LABEL: func.func private @more
func.func private @more(%x: tensor<2x33026xui8>, %w: tensor<33026x2xui8>) -> tensor<2x2xf32> {
  // CHECK: stablehlo.dot_general {{.*}} : (tensor<2x33026xf32>,
  %s = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.convert %x : (tensor<2x33026xui8>) -> tensor<2x33026xf32>
  %1 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2x33026xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<2x33026xf32>
  %3 = stablehlo.convert %w : (tensor<33026x2xui8>) -> tensor<33026x2xf32>
  %4 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<33026x2xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<33026x2xf32>
  %6 = stablehlo.dot_general %2, %5, contracting_dims = [1] x [0] : (tensor<2x33026xf32>, tensor<33026x2xf32>) -> tensor<2x2xf32>
  return %6 : tensor<2x2xf32>
}
