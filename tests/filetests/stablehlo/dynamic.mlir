// RUN: gcomp opt %s | filecheck %s

// The result's type is declared: `?` where nothing is known, or a formula.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, ["n"]>, %shape: tensor<2xi64>) -> tensor<?x?xf32, ["m", "n"]> {
  // CHECK-NEXT: %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1] : (tensor<?xf32, ["n"]>, tensor<2xi64>) -> tensor<?x?xf32, ["m", "n"]>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1] : (tensor<?xf32, ["n"]>, tensor<2xi64>) -> tensor<?x?xf32, ["m", "n"]>
  return %0 : tensor<?x?xf32, ["m", "n"]>
}

// CHECK-LABEL: func.func private @known_dimensions
func.func private @known_dimensions(%x: tensor<?x1xf32, ["n", "1"]>, %shape: tensor<2xindex>) -> tensor<?x4xf32> {
  // CHECK-NEXT: %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0, 1] {known_expanding_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?x1xf32, ["n", "1"]>, tensor<2xindex>) -> tensor<?x4xf32>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0, 1] {known_expanding_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?x1xf32, ["n", "1"]>, tensor<2xindex>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func private @dynamic_conv
func.func private @dynamic_conv(%x: tensor<?x8x8x3xf32, ["batch", "8", "8", "3"]>, %w: tensor<3x3x3x4xf32>, %pad: tensor<2x2xi64>) -> tensor<?x?x?x4xf32> {
  // CHECK-NEXT: %0 = "stablehlo.dynamic_conv"(%x, %w, %pad) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<?x8x8x3xf32, ["batch", "8", "8", "3"]>, tensor<3x3x3x4xf32>, tensor<2x2xi64>) -> tensor<?x?x?x4xf32>
  %0 = "stablehlo.dynamic_conv"(%x, %w, %pad) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<?x8x8x3xf32, ["batch", "8", "8", "3"]>, tensor<3x3x3x4xf32>, tensor<2x2xi64>) -> tensor<?x?x?x4xf32>
  return %0 : tensor<?x?x?x4xf32>
}

// CHECK-LABEL: func.func private @dynamic_iota
func.func private @dynamic_iota(%shape: tensor<2xi64>) -> tensor<?x?xi32, ["n", "m"]> {
  // CHECK-NEXT: %0 = stablehlo.dynamic_iota %shape, dim = 1 : (tensor<2xi64>) -> tensor<?x?xi32, ["n", "m"]>
  %0 = stablehlo.dynamic_iota %shape, dim = 1 : (tensor<2xi64>) -> tensor<?x?xi32, ["n", "m"]>
  return %0 : tensor<?x?xi32, ["n", "m"]>
}

// CHECK-LABEL: func.func private @dynamic_pad
func.func private @dynamic_pad(%x: tensor<?xf32, ["n"]>, %z: tensor<f32>, %amount: tensor<1xi64>) -> tensor<?xf32> {
  // CHECK-NEXT: %0 = stablehlo.dynamic_pad %x, %z, %amount, %amount, %amount : (tensor<?xf32, ["n"]>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  %0 = stablehlo.dynamic_pad %x, %z, %amount, %amount, %amount : (tensor<?xf32, ["n"]>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func private @dynamic_reshape
func.func private @dynamic_reshape(%x: tensor<?x6xf32, ["n", "6"]>, %shape: tensor<2xi64>) -> tensor<?x3xf32, ["2*n", "3"]> {
  // CHECK-NEXT: %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?x6xf32, ["n", "6"]>, tensor<2xi64>) -> tensor<?x3xf32, ["2*n", "3"]>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?x6xf32, ["n", "6"]>, tensor<2xi64>) -> tensor<?x3xf32, ["2*n", "3"]>
  return %0 : tensor<?x3xf32, ["2*n", "3"]>
}

// CHECK-LABEL: func.func private @real_dynamic_slice
func.func private @real_dynamic_slice(%x: tensor<?xf32, ["n"]>, %i: tensor<1xi64>) -> tensor<?xf32> {
  // CHECK-NEXT: %0 = stablehlo.real_dynamic_slice %x, %i, %i, %i : (tensor<?xf32, ["n"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  %0 = stablehlo.real_dynamic_slice %x, %i, %i, %i : (tensor<?xf32, ["n"]>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func private @get_dimension_size
func.func private @get_dimension_size(%x: tensor<?x3xf32, ["n", "3"]>) -> tensor<i32> {
  // CHECK-NEXT: %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32, ["n", "3"]>) -> tensor<i32>
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32, ["n", "3"]>) -> tensor<i32>
  return %0 : tensor<i32>
}

// CHECK-LABEL: func.func private @set_dimension_size
func.func private @set_dimension_size(%x: tensor<4x3xf32>, %size: tensor<i32>) -> tensor<?x3xf32, ["n", "3"]> {
  // CHECK-NEXT: %0 = stablehlo.set_dimension_size %x, %size, dim = 0 : (tensor<4x3xf32>, tensor<i32>) -> tensor<?x3xf32, ["n", "3"]>
  %0 = stablehlo.set_dimension_size %x, %size, dim = 0 : (tensor<4x3xf32>, tensor<i32>) -> tensor<?x3xf32, ["n", "3"]>
  return %0 : tensor<?x3xf32, ["n", "3"]>
}
