// RUN: gcomp opt %s -p 'quantized-products{form="bytes"}' | filecheck %s

// Quantized values are compared where they are as large as what they stand for; padding is the least of them.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x5x5x2xui8>) -> tensor<1x3x3x2xf32> {
  // CHECK: [[L:%.*]] = stablehlo.constant dense<0> : tensor<ui8>
  // CHECK: [[P:%.*]] = "stablehlo.reduce_window"(%x, [[L]])
  // CHECK: [[F:%.*]] = stablehlo.convert [[P]] : (tensor<1x3x3x2xui8>) -> tensor<1x3x3x2xf32>
  // CHECK: [[D:%.*]] = stablehlo.subtract [[F]]
  // CHECK: stablehlo.multiply [[D]]
  %0 = stablehlo.convert %x : (tensor<1x5x5x2xui8>) -> tensor<1x5x5x2xf32>
  %z = stablehlo.constant dense<7> : tensor<ui8>
  %1 = stablehlo.convert %z : (tensor<ui8>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1x5x5x2xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<1x5x5x2xf32>
  %s = stablehlo.constant dense<0.1> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<1x5x5x2xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<1x5x5x2xf32>
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %6 = "stablehlo.reduce_window"(%5, %i) <{window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %7 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %7 : tensor<f32>
  }) : (tensor<1x5x5x2xf32>, tensor<f32>) -> tensor<1x3x3x2xf32>
  return %6 : tensor<1x3x3x2xf32>
}

// A window of padding alone is minus infinity, which no quantized value stands for.
// CHECK-LABEL: @outside
func.func private @outside(%x: tensor<4xi8>) -> tensor<5xf32> {
  // CHECK: "stablehlo.reduce_window"({{.*}}) {{.*}}
  // CHECK: tensor<5xf32>
  // CHECK-NOT: tensor<5xi8>
  %0 = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xf32>
  %s = stablehlo.constant dense<0.1> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %3 = "stablehlo.reduce_window"(%2, %i) <{window_dimensions = array<i64: 2>, padding = dense<[[2, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  return %3 : tensor<5xf32>
}
