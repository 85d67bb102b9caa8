// RUN: gcomp opt %s -p "raise-norms" | filecheck %s

// A norm of widened numbers, the result of which is narrowed again, is one of the narrow numbers.
// CHECK-LABEL: @main
func.func @main(%x: tensor<2x8xbf16>) -> tensor<2x8xbf16> {
  // CHECK: [[N:%.*]] = stablehlo.composite "gcomp.rms_norm" %x
  // CHECK: return [[N]]
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %0 = stablehlo.convert %x : (tensor<2x8xbf16>) -> tensor<2x8xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<2x8xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = stablehlo.divide %2, %count : tensor<2xf32>
  %4 = stablehlo.add %3, %epsilon : tensor<2xf32>
  %5 = stablehlo.rsqrt %4 : tensor<2xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %7 = stablehlo.multiply %0, %6 : tensor<2x8xf32>
  %8 = stablehlo.convert %7 : (tensor<2x8xf32>) -> tensor<2x8xbf16>
  return %8 : tensor<2x8xbf16>
}
