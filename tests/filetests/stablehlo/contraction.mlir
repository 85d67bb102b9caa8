// RUN: gcomp opt %s | filecheck %s

// Attention scores: batch dimensions first, then the free ones of both sides.
// CHECK-LABEL: func.func @main
func.func @main(%q: tensor<?x?x64xf32, ["batch", "seq", "64"]>, %k: tensor<?x?x64xf32, ["batch", "past + seq", "64"]>) -> tensor<?x?x?xf32, ["batch", "seq", "past + seq"]> {
  // CHECK-NEXT: %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<?x?x64xf32, ["batch", "seq", "64"]>, tensor<?x?x64xf32, ["batch", "past + seq", "64"]>) -> tensor<?x?x?xf32, ["batch", "seq", "past + seq"]>
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<?x?x64xf32, ["batch", "seq", "64"]>, tensor<?x?x64xf32, ["batch", "past + seq", "64"]>) -> tensor<?x?x?xf32, ["batch", "seq", "past + seq"]>
  return %0 : tensor<?x?x?xf32, ["batch", "seq", "past + seq"]>
}

// CHECK-LABEL: func.func private @wider
func.func private @wider(%x: tensor<3x4xi8>, %y: tensor<4x5xi8>) -> tensor<3x5xi32> {
  // CHECK-NEXT: %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<3x4xi8>, tensor<4x5xi8>) -> tensor<3x5xi32>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST] : (tensor<3x4xi8>, tensor<4x5xi8>) -> tensor<3x5xi32>
  return %0 : tensor<3x5xi32>
}

// CHECK-LABEL: func.func private @algorithm
func.func private @algorithm(%x: tensor<3x4xf32>, %y: tensor<4x5xf32>) -> tensor<3x5xf32> {
  // CHECK-NEXT: %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// How often the window fits the padded height is a formula too.
// CHECK-LABEL: func.func private @convolution
func.func private @convolution(%x: tensor<?x?x8x4xf32, ["batch", "h", "8", "4"]>, %w: tensor<3x3x1x4xf32>) -> tensor<?x?x8x4xf32, ["batch", "floordiv(h + 1, 2)", "8", "4"]> {
  // CHECK-NEXT: %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = {{\[\[}}1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<?x?x8x4xf32, ["batch", "h", "8", "4"]>, tensor<3x3x1x4xf32>) -> tensor<?x?x8x4xf32, ["batch", "floordiv(h + 1, 2)", "8", "4"]>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<?x?x8x4xf32, ["batch", "h", "8", "4"]>, tensor<3x3x1x4xf32>) -> tensor<?x?x8x4xf32, ["batch", "floordiv(h + 1, 2)", "8", "4"]>
  return %0 : tensor<?x?x8x4xf32, ["batch", "floordiv(h + 1, 2)", "8", "4"]>
}

// CHECK-LABEL: func.func private @transposed_convolution
func.func private @transposed_convolution(%x: tensor<1x4x8xf32>, %w: tensor<3x4x8xf32>) -> tensor<1x8x17xf32> {
  // CHECK-NEXT: %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[0, i, o]->[b, f, 0], window = {pad = {{\[\[}}2, 2]], lhs_dilate = [2], rhs_dilate = [1], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>]} : (tensor<1x4x8xf32>, tensor<3x4x8xf32>) -> tensor<1x8x17xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[0, i, o]->[b, f, 0], window = {pad = [[2, 2]], lhs_dilate = [2], rhs_dilate = [1], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>]} : (tensor<1x4x8xf32>, tensor<3x4x8xf32>) -> tensor<1x8x17xf32>
  return %0 : tensor<1x8x17xf32>
}
