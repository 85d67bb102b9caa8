// RUN: gcomp opt %s -p 'inline-composites{keep="gcomp.softmax"},canonicalize,dce' | filecheck %s

// A name is kept where it says what is computed, and marked: passes that rewrite the decomposition keep its meaning.
// CHECK-LABEL: @main
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-NEXT: stablehlo.composite "gcomp.softmax" %x {gcomp.canonical,
  %0 = stablehlo.composite "gcomp.softmax" %x {decomposition = @gcomp.softmax.0, composite_attributes = {axis = 1 : i64}}
      : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // One that only has the name of a softmax is inlined.
  // CHECK-NEXT: [[R:%.*]] = stablehlo.multiply %x, %x
  %1 = stablehlo.composite "gcomp.softmax" %x {decomposition = @square, composite_attributes = {axis = 1 : i64}}
      : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}
func.func private @square(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func private @gcomp.softmax.0(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = stablehlo.reshape %2 : (tensor<2xf32>) -> tensor<2x1xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %5 = stablehlo.subtract %0, %4 : tensor<2x3xf32>
  %6 = stablehlo.exponential %5 : tensor<2x3xf32>
  %7 = stablehlo.constant dense<0.0> : tensor<f32>
  %8 = stablehlo.reduce(%6 init: %7) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %9 = stablehlo.reshape %8 : (tensor<2xf32>) -> tensor<2x1xf32>
  %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  %11 = stablehlo.divide %6, %10 : tensor<2x3xf32>
  return %11 : tensor<2x3xf32>
}
