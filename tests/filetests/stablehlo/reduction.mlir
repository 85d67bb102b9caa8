// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x?xf32, ["batch", "seq"]>, %zero: tensor<f32>) -> tensor<?xf32, ["batch"]> {
  // CHECK-NEXT: %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32, ["batch", "seq"]>, tensor<f32>) -> tensor<?xf32, ["batch"]>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32, ["batch", "seq"]>, tensor<f32>) -> tensor<?xf32, ["batch"]>
  return %0 : tensor<?xf32, ["batch"]>
}

// A body of its own, on two inputs: the largest element and the smallest index.
// CHECK-LABEL: func.func private @two_inputs
func.func private @two_inputs(%x: tensor<?x3xf32, ["n", "3"]>, %i: tensor<?x3xi32, ["n", "3"]>, %low: tensor<f32>, %high: tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>) {
  // CHECK-NEXT: %0, %1 = stablehlo.reduce(%x init: %low), (%i init: %high) across dimensions = [0] : (tensor<?x3xf32, ["n", "3"]>, tensor<?x3xi32, ["n", "3"]>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
  // CHECK-NEXT: reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {
  // CHECK-NEXT: %m = stablehlo.maximum %a, %c : tensor<f32>
  // CHECK-NEXT: %n = stablehlo.minimum %b, %d : tensor<i32>
  // CHECK-NEXT: stablehlo.return %m, %n : tensor<f32>, tensor<i32>
  // CHECK-NEXT: }
  %0, %1 = stablehlo.reduce(%x init: %low), (%i init: %high) across dimensions = [0] : (tensor<?x3xf32, ["n", "3"]>, tensor<?x3xi32, ["n", "3"]>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
  reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {
    %m = stablehlo.maximum %a, %c : tensor<f32>
    %n = stablehlo.minimum %b, %d : tensor<i32>
    stablehlo.return %m, %n : tensor<f32>, tensor<i32>
  }
  return %0, %1 : tensor<3xf32>, tensor<3xi32>
}

// CHECK-LABEL: func.func private @reduce_window
func.func private @reduce_window(%x: tensor<?x8xf32, ["n", "8"]>, %low: tensor<f32>) -> tensor<?x4xf32, ["n", "4"]> {
  // CHECK-NEXT: %0 = "stablehlo.reduce_window"(%x, %low) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  // CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>):
  // CHECK-NEXT: %m = stablehlo.maximum %a, %b : tensor<f32>
  // CHECK-NEXT: stablehlo.return %m : tensor<f32>
  // CHECK-NEXT: }) : (tensor<?x8xf32, ["n", "8"]>, tensor<f32>) -> tensor<?x4xf32, ["n", "4"]>
  %0 = "stablehlo.reduce_window"(%x, %low) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<?x8xf32, ["n", "8"]>, tensor<f32>) -> tensor<?x4xf32, ["n", "4"]>
  return %0 : tensor<?x4xf32, ["n", "4"]>
}

// Where the dimension may be smaller than the window, the result may be empty.
// CHECK-LABEL: func.func private @symbolic_window
func.func private @symbolic_window(%x: tensor<?xf32, ["n"]>, %zero: tensor<f32>) -> tensor<?xf32, ["max(0, n - 2)"]> {
  // CHECK-NEXT: %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3>}> ({
  // CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>):
  // CHECK-NEXT: %m = stablehlo.add %a, %b : tensor<f32>
  // CHECK-NEXT: stablehlo.return %m : tensor<f32>
  // CHECK-NEXT: }) : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["max(0, n - 2)"]>
  %0 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["max(0, n - 2)"]>
  return %0 : tensor<?xf32, ["max(0, n - 2)"]>
}

// CHECK-LABEL: func.func private @select_and_scatter
func.func private @select_and_scatter(%x: tensor<?x8xf32, ["n", "8"]>, %s: tensor<?x4xf32, ["n", "4"]>, %zero: tensor<f32>) -> tensor<?x8xf32, ["n", "8"]> {
  // CHECK-NEXT: %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  // CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>):
  // CHECK-NEXT: %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // CHECK-NEXT: stablehlo.return %p : tensor<i1>
  // CHECK-NEXT: }, {
  // CHECK-NEXT: ^bb0(%c: tensor<f32>, %d: tensor<f32>):
  // CHECK-NEXT: %t = stablehlo.add %c, %d : tensor<f32>
  // CHECK-NEXT: stablehlo.return %t : tensor<f32>
  // CHECK-NEXT: }) : (tensor<?x8xf32, ["n", "8"]>, tensor<?x4xf32, ["n", "4"]>, tensor<f32>) -> tensor<?x8xf32, ["n", "8"]>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    %t = stablehlo.add %c, %d : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<?x8xf32, ["n", "8"]>, tensor<?x4xf32, ["n", "4"]>, tensor<f32>) -> tensor<?x8xf32, ["n", "8"]>
  return %0 : tensor<?x8xf32, ["n", "8"]>
}

// CHECK-LABEL: func.func private @map
func.func private @map(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0>}> ({
  // CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>):
  // CHECK-NEXT: %t = stablehlo.multiply %a, %b : tensor<f32>
  // CHECK-NEXT: stablehlo.return %t : tensor<f32>
  // CHECK-NEXT: }) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
