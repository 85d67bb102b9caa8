// RUN: gcomp opt %s -p fuse --split --check-each | filecheck %s

// A product takes what follows it element by element; a softmax is one kernel, of three passes over each row.
// CHECK-LABEL: func.func @attend
// CHECK-NEXT: %0 = kernel.launch matmul "dot_general_add" (%x_1 = %x, %w_1 = %w, %{{.*}} = %b)
// CHECK: stablehlo.broadcast_in_dim
// CHECK: kernel.launch reduction "reduce_subtract_exponential_divide" (%{{.*}} = %0) : (tensor<64x256xf32>) -> tensor<64x256xf32> {
// CHECK-NOT: kernel.launch
func.func @attend(%x: tensor<64x128xf32>, %w: tensor<128x256xf32>, %b: tensor<256xf32>) -> tensor<64x256xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<256xf32>) -> tensor<64x256xf32>
  %2 = stablehlo.add %0, %1 : tensor<64x256xf32>
  %3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.maximum across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %6 = stablehlo.subtract %2, %5 : tensor<64x256xf32>
  %7 = stablehlo.exponential %6 : tensor<64x256xf32>
  %8 = stablehlo.constant dense<0.0> : tensor<f32>
  %9 = stablehlo.reduce(%7 init: %8) applies stablehlo.add across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %11 = stablehlo.divide %7, %10 : tensor<64x256xf32>
  return %11 : tensor<64x256xf32>
}
// -----
// A mean over all rows is not of one row: what uses it is a kernel of its own.
// CHECK-LABEL: func.func @centered
// CHECK: kernel.launch reduction "reduce" (%x_1 = %x) : (tensor<64x256xf32>) -> tensor<256xf32>
// CHECK: kernel.launch reduction "subtract_reduce"
func.func @centered(%x: tensor<64x256xf32>) -> tensor<64xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [0] : (tensor<64x256xf32>, tensor<f32>) -> tensor<256xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<256xf32>) -> tensor<64x256xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<64x256xf32>
  %4 = stablehlo.reduce(%3 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  return %4 : tensor<64xf32>
}
// -----
// Sizes may be symbolic: the rows of a reshaped tensor agree with those of what it was.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-1: kernel.launch reduction
// CHECK-NOT: kernel.launch
func.func @rows(%x: tensor<?x16x8xf32, ["n", "16", "8"]>) -> tensor<?x16x8xf32, ["n", "16", "8"]> {
  %0 = stablehlo.reshape %x : (tensor<?x16x8xf32, ["n", "16", "8"]>) -> tensor<?x8xf32, ["16*n", "8"]>
  %1 = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [1] : (tensor<?x8xf32, ["16*n", "8"]>, tensor<f32>) -> tensor<?xf32, ["16*n"]>
  %3 = stablehlo.reshape %2 : (tensor<?xf32, ["16*n"]>) -> tensor<?x16xf32, ["n", "16"]>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<?x16xf32, ["n", "16"]>) -> tensor<?x16x8xf32, ["n", "16", "8"]>
  %5 = stablehlo.divide %x, %4 : tensor<?x16x8xf32, ["n", "16", "8"]>
  return %5 : tensor<?x16x8xf32, ["n", "16", "8"]>
}
// -----
// Two kernels that read the same data become one; a view costs nothing, and stays outside.
// CHECK-LABEL: func.func @siblings
// CHECK-NEXT: %0, %1 = kernel.launch loop
// CHECK-NEXT: stablehlo.negate
// CHECK-NEXT: stablehlo.exponential
// CHECK-NEXT: stablehlo.return
// CHECK-NEXT: }
// CHECK-NEXT: stablehlo.reshape %1
func.func @siblings(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<4096xf32>) {
  %0 = stablehlo.negate %x : tensor<64x64xf32>
  %1 = stablehlo.exponential %x : tensor<64x64xf32>
  %2 = stablehlo.reshape %1 : (tensor<64x64xf32>) -> tensor<4096xf32>
  return %0, %2 : tensor<64x64xf32>, tensor<4096xf32>
}
// -----
// Fusing the sum with the product around the sort would make a circle: the sum waits for the sort, that for the product.
// CHECK-LABEL: func.func @circle
// CHECK: kernel.launch matmul "dot_general"
// CHECK: kernel.launch sort "sort"
// CHECK: kernel.launch loop "add"
func.func @circle(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.add %0, %1 : tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}
// -----
// A cheap producer of two kernels that cannot join is computed in each of them.
// CHECK-LABEL: func.func @copies
// CHECK: kernel.launch sort "exponential_sort"
// CHECK: kernel.launch loop "exponential_add"
func.func @copies(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.exponential %x : tensor<64xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<64xf32>) -> tensor<64xf32>
  %2 = stablehlo.add %0, %1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}
// -----
// What is returned is a view of a view; copying the producer into its readers must leave both.
// CHECK-LABEL: func.func @views
// CHECK: stablehlo.reshape
// CHECK-NEXT: stablehlo.reshape
func.func @views(%x: tensor<1x1xi32>, %y: tensor<i32>) -> (tensor<1xi32>, tensor<1xi32>, tensor<1x1xi32>) {
  %0 = stablehlo.reshape %x : (tensor<1x1xi32>) -> tensor<1xi32>
  %1 = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<1xi32>
  %2 = stablehlo.pad %0, %y, low = [0], high = [0], interior = [0] : (tensor<1xi32>, tensor<i32>) -> tensor<1xi32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<1xi32>) -> tensor<1x1xi32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [0] x [0] : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
  %5 = "stablehlo.reduce_window"(%2, %y) <{window_dimensions = array<i64: 1>, base_dilations = array<i64: 1>, padding = dense<0> : tensor<1x2xi64>}> ({
  ^bb0(%6: tensor<i32>, %7: tensor<i32>):
    stablehlo.return %6 : tensor<i32>
  }) : (tensor<1xi32>, tensor<i32>) -> tensor<1xi32>
  return %5, %1, %4 : tensor<1xi32>, tensor<1xi32>, tensor<1x1xi32>
}
// -----
// Random numbers are drawn in the program's order.
// CHECK-LABEL: func.func @draws
// CHECK: stablehlo.rng %y
// CHECK: stablehlo.rng %z
func.func @draws(%x: tensor<1xf32>, %y: tensor<f32>, %z: tensor<f32>, %s: tensor<1xi32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %0 = stablehlo.rng %y, %y, %s, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi32>) -> tensor<1xf32>
  %1 = stablehlo.rng %z, %z, %s, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi32>) -> tensor<1xf32>
  %2 = stablehlo.divide %x, %1 : tensor<1xf32>
  %3 = stablehlo.add %2, %0 : tensor<1xf32>
  return %3, %2 : tensor<1xf32>, tensor<1xf32>
}
// -----
// Two pairs of siblings: when the first pair has become one, the second one's order has turned, and joining it would
// close a circle through batch norm.
// CHECK-LABEL: func.func @turned
// CHECK: stablehlo.batch_norm_training
func.func @turned(%a: tensor<4x2x2xf16>, %b: tensor<4xf16>, %c: tensor<f16>)
    -> (tensor<4x2x2xf16>, tensor<4xf16>, tensor<4x2x2xf16>) {
  %0 = stablehlo.minimum %a, %a : tensor<4x2x2xf16>
  %1, %2, %3 = "stablehlo.batch_norm_training"(%0, %b, %b) <{epsilon = 1.0e-03 : f32, feature_index = 0 : i64}>
      : (tensor<4x2x2xf16>, tensor<4xf16>, tensor<4xf16>) -> (tensor<4x2x2xf16>, tensor<4xf16>, tensor<4xf16>)
  %4 = stablehlo.minimum %b, %2 : tensor<4xf16>
  %5 = stablehlo.constant dense<0.0> : tensor<f16>
  %6 = stablehlo.reduce(%b init: %5) applies stablehlo.add across dimensions = [0] : (tensor<4xf16>, tensor<f16>) -> tensor<f16>
  %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f16>) -> tensor<4x2x2xf16>
  %8 = stablehlo.atan2 %a, %7 : tensor<4x2x2xf16>
  return %1, %4, %8 : tensor<4x2x2xf16>, tensor<4xf16>, tensor<4x2x2xf16>
}
