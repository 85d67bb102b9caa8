// RUN: gcomp opt %s -p conv-channels-last | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<1x2x5x5xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32> {
  // CHECK: [[X:%.*]] = stablehlo.transpose %x, dims = [0, 2, 3, 1]
  // CHECK: [[W:%.*]] = stablehlo.transpose %w, dims = [2, 3, 1, 0]
  // CHECK: [[Y:%.*]] = stablehlo.convolution([[X]], [[W]]) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
  // CHECK: stablehlo.transpose [[Y]], dims = [0, 3, 1, 2]
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  return %0 : tensor<1x4x3x3xf32>
}
