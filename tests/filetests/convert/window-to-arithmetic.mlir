// RUN: gcomp opt %s -p window-to-arithmetic | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<1x4x4x8xf32>) -> tensor<1x2x4x8xf32> {
  // CHECK: [[A:%.*]] = stablehlo.slice %x [0:1, 0:3:2, 0:4, 0:8]
  // CHECK: [[B:%.*]] = stablehlo.slice %x [0:1, 1:4:2, 0:4, 0:8]
  // CHECK: [[R:%.*]] = stablehlo.maximum [[A]], [[B]]
  // CHECK-NEXT: return [[R]]
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 2, 1, 1>, window_strides = array<i64: 1, 2, 1, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x4x4x8xf32>, tensor<f32>) -> tensor<1x2x4x8xf32>
  return %0 : tensor<1x2x4x8xf32>
}

// A maximum from 0 is not the maximum of the window.
// CHECK-LABEL: @from_zero
func.func private @from_zero(%x: tensor<4xf32>) -> tensor<2xf32> {
  // CHECK: reduce_window
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @symbolic
func.func private @symbolic(%x: tensor<?xf32, ["2*n + 1"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NOT: reduce_window
  // CHECK: [[A:%.*]] = stablehlo.slice %x [0:"2*n - 1":2]
  // CHECK: [[B:%.*]] = stablehlo.slice %x [1:"2*n":2]
  // CHECK: [[M:%.*]] = stablehlo.maximum [[A]], [[B]]
  // CHECK: [[C:%.*]] = stablehlo.slice %x [2:"2*n + 1":2]
  // CHECK: stablehlo.maximum [[M]], [[C]]
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>, padding = dense<[[0, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32, ["2*n + 1"]>, tensor<f32>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}

// How much there is to slice is not known.
// CHECK-LABEL: @unknown
func.func private @unknown(%x: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: reduce_window
  %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 1>, padding = dense<[[1, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// One window over the whole image, and the zeros around it, is a sum.
// CHECK-LABEL: @everything
func.func private @everything(%x: tensor<1x3x5x8xf32>) -> tensor<1x1x1x8xf32> {
  // CHECK: [[S:%.*]] = stablehlo.reduce(%x init: {{%.*}}) applies stablehlo.add across dimensions = [1, 2]
  // CHECK-NEXT: [[R:%.*]] = stablehlo.reshape [[S]]
  // CHECK-NEXT: return [[R]]
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 90, 7, 1>, window_strides = array<i64: 1, 90, 7, 1>, padding = dense<[[0, 0], [0, 87], [1, 1], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x3x5x8xf32>, tensor<f32>) -> tensor<1x1x1x8xf32>
  return %0 : tensor<1x1x1x8xf32>
}

// What is around it would be added, and is 1.
// CHECK-LABEL: @ones_around
func.func private @ones_around(%x: tensor<20x8xf32>) -> tensor<1x8xf32> {
  // CHECK: reduce_window
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 21, 1>, window_strides = array<i64: 1, 1>, padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<20x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}
