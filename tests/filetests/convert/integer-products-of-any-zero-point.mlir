// RUN: gcomp opt %s -p integer-products --check-each | filecheck %s

// A zero point of 32 bits may be any number: f32 does not hold what is left, and 32 bits wrap as before.
// CHECK-LABEL: @main
// CHECK-NOT: xf32
func.func @main(%x: tensor<1x4xi8>, %z: tensor<i32>, %w: tensor<4x3xi8>) -> tensor<1x3xi32> {
  %0 = stablehlo.convert %x : (tensor<1x4xi8>) -> tensor<1x4xi32>
  %1 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<i32>) -> tensor<1x4xi32>
  %2 = stablehlo.subtract %0, %1 : tensor<1x4xi32>
  %3 = stablehlo.convert %w : (tensor<4x3xi8>) -> tensor<4x3xi32>
  %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<1x4xi32>, tensor<4x3xi32>) -> tensor<1x3xi32>
  return %4 : tensor<1x3xi32>
}
