// RUN: gcomp opt %s -p merge-convolutions,fold-constants | filecheck %s

// A layer with branches: windows of three points and of one, the input scaled by channel, and a bias twice.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x5x2xf32>) -> tensor<1x5x2xf32> {
  // CHECK: [[W:%.*]] = stablehlo.constant dense<{{\[\[\[}}1.0, 2.0], [3.0, 4.0]], {{\[\[}}16.0, 10.0], [10.0, 27.0]], {{\[\[}}1.0, 2.0], [3.0, 4.0]]]> : tensor<3x2x2xf32>
  // CHECK: [[Y:%.*]] = stablehlo.convolution(%x, [[W]]) {{.*}}pad = {{\[\[}}1, 1]]
  // CHECK: [[C:%.*]] = stablehlo.constant dense<[10.0, 20.0]> : tensor<2xf32>
  // CHECK: [[B:%.*]] = stablehlo.broadcast_in_dim [[C]], dims = [2]
  // CHECK-NEXT: stablehlo.add [[Y]], [[B]]
  // CHECK-NOT: stablehlo.multiply
  %w3 = stablehlo.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]], [[1.0, 2.0], [3.0, 4.0]]]> : tensor<3x2x2xf32>
  %w1 = stablehlo.constant dense<[[[1.0, 4.0], [3.0, -1.0]]]> : tensor<1x2x2xf32>
  %s = stablehlo.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %c = stablehlo.constant dense<[5.0, 10.0]> : tensor<2xf32>
  %0 = stablehlo.convolution(%x, %w3) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} : (tensor<1x5x2xf32>, tensor<3x2x2xf32>) -> tensor<1x5x2xf32>
  %1 = stablehlo.convolution(%x, %w1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} : (tensor<1x5x2xf32>, tensor<1x2x2xf32>) -> tensor<1x5x2xf32>
  %2 = stablehlo.broadcast_in_dim %s, dims = [2] : (tensor<2xf32>) -> tensor<1x5x2xf32>
  %3 = stablehlo.multiply %2, %x : tensor<1x5x2xf32>
  %4 = stablehlo.broadcast_in_dim %c, dims = [2] : (tensor<2xf32>) -> tensor<1x5x2xf32>
  %5 = stablehlo.add %1, %4 : tensor<1x5x2xf32>
  %6 = stablehlo.add %3, %5 : tensor<1x5x2xf32>
  %7 = stablehlo.add %6, %0 : tensor<1x5x2xf32>
  %8 = stablehlo.add %7, %4 : tensor<1x5x2xf32>
  return %8 : tensor<1x5x2xf32>
}

// The window of two begins before that of three.
// CHECK-LABEL: @outside
func.func private @outside(%x: tensor<1x5x1xf32>) -> tensor<1x5x1xf32> {
  // CHECK: stablehlo.convolution
  // CHECK: stablehlo.convolution
  %w3 = stablehlo.constant dense<1.0> : tensor<3x1x1xf32>
  %w2 = stablehlo.constant dense<1.0> : tensor<2x1x1xf32>
  %0 = stablehlo.convolution(%x, %w3) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[0, 2]]} : (tensor<1x5x1xf32>, tensor<3x1x1xf32>) -> tensor<1x5x1xf32>
  %1 = stablehlo.convolution(%x, %w2) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 0]]} : (tensor<1x5x1xf32>, tensor<2x1x1xf32>) -> tensor<1x5x1xf32>
  %2 = stablehlo.add %0, %1 : tensor<1x5x1xf32>
  return %2 : tensor<1x5x1xf32>
}

// The sum of the weights would be infinite.
// CHECK-LABEL: @large
func.func private @large(%x: tensor<1x5x1xf16>) -> tensor<1x5x1xf16> {
  // CHECK: stablehlo.convolution
  // CHECK: stablehlo.convolution
  %v = stablehlo.constant dense<4.0e4> : tensor<1x1x1xf16>
  %w = stablehlo.constant dense<3.0e4> : tensor<1x1x1xf16>
  %0 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} : (tensor<1x5x1xf16>, tensor<1x1x1xf16>) -> tensor<1x5x1xf16>
  %1 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} : (tensor<1x5x1xf16>, tensor<1x1x1xf16>) -> tensor<1x5x1xf16>
  %2 = stablehlo.add %0, %1 : tensor<1x5x1xf16>
  return %2 : tensor<1x5x1xf16>
}

// A branch that something else reads is computed anyway.
// CHECK-LABEL: @used
func.func private @used(%x: tensor<1x5x1xf32>) -> (tensor<1x5x1xf32>, tensor<1x5x1xf32>) {
  // CHECK: stablehlo.convolution
  // CHECK: stablehlo.convolution
  %v = stablehlo.constant dense<2.0> : tensor<1x1x1xf32>
  %w = stablehlo.constant dense<3.0> : tensor<1x1x1xf32>
  %0 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} : (tensor<1x5x1xf32>, tensor<1x1x1xf32>) -> tensor<1x5x1xf32>
  %1 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} : (tensor<1x5x1xf32>, tensor<1x1x1xf32>) -> tensor<1x5x1xf32>
  %2 = stablehlo.add %0, %1 : tensor<1x5x1xf32>
  return %2, %0 : tensor<1x5x1xf32>, tensor<1x5x1xf32>
}
