// RUN: gcomp opt %s | filecheck %s
// RUN: gcomp opt %s --generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, ["seq"]>) -> tensor<?x?xf32, ["batch", "seq"]> {
  // CHECK-NEXT: %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<?xf32, ["seq"]>) -> tensor<?x?xf32, ["batch", "seq"]>
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<?xf32, ["seq"]>) -> tensor<?x?xf32, ["batch", "seq"]>
  return %0 : tensor<?x?xf32, ["batch", "seq"]>
}

// The size along the dimension is the sum of the operands' sizes.
// CHECK-LABEL: func.func private @concatenate
func.func private @concatenate(%x: tensor<?xf32, ["n"]>, %y: tensor<3xf32>) -> tensor<?xf32, ["2*n + 3"]> {
  // CHECK-NEXT: %0 = stablehlo.concatenate %x, %y, %x, dim = 0 : (tensor<?xf32, ["n"]>, tensor<3xf32>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["2*n + 3"]>
  %0 = stablehlo.concatenate %x, %y, %x, dim = 0 : (tensor<?xf32, ["n"]>, tensor<3xf32>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["2*n + 3"]>
  return %0 : tensor<?xf32, ["2*n + 3"]>
}

// Negative padding removes elements. Amounts may be symbolic; in text they are strings then.
// CHECK-LABEL: func.func private @pad
func.func private @pad(%x: tensor<4xf32>, %y: tensor<?xf32, ["n"]>, %z: tensor<f32>) -> tensor<?xf32, ["m"]> {
  // CHECK-NEXT: %0 = stablehlo.pad %x, %z, low = [-1], high = [3], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<9xf32>
  %0 = stablehlo.pad %x, %z, low = [-1], high = [3], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<9xf32>
  // GENERIC: %1 = "stablehlo.pad"(%y, %z) <{edge_padding_low = array<i64: 0>, edge_padding_high = ["m - n"], interior_padding = array<i64: 0>}>
  // CHECK-NEXT: %1 = stablehlo.pad %y, %z, low = [0], high = ["m - n"], interior = [0] : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["m"]>
  %1 = stablehlo.pad %y, %z, low = [0], high = ["m - n"], interior = [0] : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["m"]>
  return %1 : tensor<?xf32, ["m"]>
}

// CHECK-LABEL: func.func private @reshape
func.func private @reshape(%x: tensor<?x6xf32, ["batch", "6"]>) -> tensor<?x2x3xf32, ["batch", "2", "3"]> {
  // CHECK-NEXT: %0 = stablehlo.reshape %x : (tensor<?x6xf32, ["batch", "6"]>) -> tensor<?xf32, ["6*batch"]>
  %0 = stablehlo.reshape %x : (tensor<?x6xf32, ["batch", "6"]>) -> tensor<?xf32, ["6*batch"]>
  // CHECK-NEXT: %1 = stablehlo.reshape %0 : (tensor<?xf32, ["6*batch"]>) -> tensor<?x2x3xf32, ["batch", "2", "3"]>
  %1 = stablehlo.reshape %0 : (tensor<?xf32, ["6*batch"]>) -> tensor<?x2x3xf32, ["batch", "2", "3"]>
  return %1 : tensor<?x2x3xf32, ["batch", "2", "3"]>
}

// CHECK-LABEL: func.func private @reverse
func.func private @reverse(%x: tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]> {
  // CHECK-NEXT: %0 = stablehlo.reverse %x, dims = [1] : tensor<?x4xf32, ["batch", "4"]>
  %0 = stablehlo.reverse %x, dims = [1] : tensor<?x4xf32, ["batch", "4"]>
  return %0 : tensor<?x4xf32, ["batch", "4"]>
}

// `start:limit:stride`, where each may be symbolic but the stride.
// CHECK-LABEL: func.func private @slice
func.func private @slice(%x: tensor<?x8xf32, ["seq", "8"]>) -> tensor<?x4xf32, ["seq - 1", "4"]> {
  // GENERIC: %0 = "stablehlo.slice"(%x) <{start_indices = array<i64: 0, 1>, limit_indices = ["seq - 1", "8"], strides = array<i64: 1, 2>}>
  // CHECK-NEXT: %0 = stablehlo.slice %x [0:"seq - 1", 1:8:2] : (tensor<?x8xf32, ["seq", "8"]>) -> tensor<?x4xf32, ["seq - 1", "4"]>
  %0 = stablehlo.slice %x [0:"seq - 1", 1:8:2] : (tensor<?x8xf32, ["seq", "8"]>) -> tensor<?x4xf32, ["seq - 1", "4"]>
  return %0 : tensor<?x4xf32, ["seq - 1", "4"]>
}

// CHECK-LABEL: func.func private @transpose
func.func private @transpose(%x: tensor<?x?x4xf32, ["batch", "seq", "4"]>) -> tensor<4x?x?xf32, ["4", "batch", "seq"]> {
  // CHECK-NEXT: %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<?x?x4xf32, ["batch", "seq", "4"]>) -> tensor<4x?x?xf32, ["4", "batch", "seq"]>
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<?x?x4xf32, ["batch", "seq", "4"]>) -> tensor<4x?x?xf32, ["4", "batch", "seq"]>
  return %0 : tensor<4x?x?xf32, ["4", "batch", "seq"]>
}
