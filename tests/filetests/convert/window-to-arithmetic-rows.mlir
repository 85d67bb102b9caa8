// RUN: gcomp opt %s -p window-to-arithmetic{rows=true} | filecheck %s

// Neighbours in memory, in rows that are worth vectors: a kernel of windows computes it.
// CHECK-LABEL: @main
func.func @main(%x: tensor<2x18xf32>) -> tensor<2x16xf32> {
  // CHECK: reduce_window
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x18xf32>, tensor<f32>) -> tensor<2x16xf32>
  return %0 : tensor<2x16xf32>
}

// CHECK-LABEL: @short
func.func private @short(%x: tensor<2x6xf32>) -> tensor<2x4xf32> {
  // CHECK-NOT: reduce_window
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: @channels_last
func.func private @channels_last(%x: tensor<18x32xf32>) -> tensor<16x32xf32> {
  // CHECK-NOT: reduce_window
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 3, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<18x32xf32>, tensor<f32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// The whole image of each of any number of images.
// CHECK-LABEL: @whole
func.func private @whole(%x: tensor<?x9x9x4xf32, ["n", "9", "9", "4"]>) -> tensor<?x1x1x4xf32, ["n", "1", "1", "4"]> {
  // CHECK: stablehlo.reduce(
  // CHECK-NOT: reduce_window
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 9, 9, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?x9x9x4xf32, ["n", "9", "9", "4"]>, tensor<f32>) -> tensor<?x1x1x4xf32, ["n", "1", "1", "4"]>
  return %0 : tensor<?x1x1x4xf32, ["n", "1", "1", "4"]>
}
