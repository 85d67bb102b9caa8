// RUN: gcomp opt %s -p guard-max-shift --check-each | filecheck %s

// Each row's maximum is subtracted from a column.
// CHECK-LABEL: @main
// CHECK-NOT: stablehlo.minimum
func.func @main(%a: tensor<3x3xf32>, %b: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %x = stablehlo.multiply %a, %b : tensor<3x3xf32>
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [1] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
  %w = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
  %r = stablehlo.subtract %x, %w : tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}
