// RUN: gcomp opt %s -p quantized-products  | filecheck %s

// A zero point of another type than the quantized values': differences reach 383, and their sums leave 32 bits.
// CHECK-LABEL: @main
// CHECK-NOT: xi32
func.func @main(%x: tensor<2x33000xi8>, %z: tensor<ui8>, %w: tensor<33000x2xi8>) -> tensor<2x2xf32> {
  %s = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.convert %x : (tensor<2x33000xi8>) -> tensor<2x33000xf32>
  %zf = stablehlo.convert %z : (tensor<ui8>) -> tensor<f32>
  %1 = stablehlo.broadcast_in_dim %zf, dims = [] : (tensor<f32>) -> tensor<2x33000xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<2x33000xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2x33000xf32>
  %3 = stablehlo.multiply %2, %sb : tensor<2x33000xf32>
  %4 = stablehlo.convert %w : (tensor<33000x2xi8>) -> tensor<33000x2xf32>
  %5 = stablehlo.broadcast_in_dim %zf, dims = [] : (tensor<f32>) -> tensor<33000x2xf32>
  %6 = stablehlo.subtract %4, %5 : tensor<33000x2xf32>
  %sc = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<33000x2xf32>
  %7 = stablehlo.multiply %6, %sc : tensor<33000x2xf32>
  %8 = stablehlo.dot_general %3, %7, contracting_dims = [1] x [0] : (tensor<2x33000xf32>, tensor<33000x2xf32>) -> tensor<2x2xf32>
  return %8 : tensor<2x2xf32>
}
