// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: convert-C1: tensor<?xf32, ["n"]> and tensor<?xf16, ["m"]> have different shapes
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf16, ["m"]> {
  %0 = stablehlo.convert %x : (tensor<?xf32, ["n"]>) -> tensor<?xf16, ["m"]>
  return %0 : tensor<?xf16, ["m"]>
}
// -----
// CHECK: why: bitcast_convert-C1: tensor<2xf32> does not have the bits of tensor<2x2xi8>
func.func @main(%x: tensor<2xf32>) -> tensor<2x2xi8> {
  %0 = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2x2xi8>
  return %0 : tensor<2x2xi8>
}
// -----
// CHECK: why: reduce_precision-C2: there is no exponent bit
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.reduce_precision %x, format = e0m10 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: expected a format such as e5m10, got 'f16'
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.reduce_precision %x, format = f16 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
