// RUN: gcomp opt %s -p integer-products | filecheck %s

// Several rows: 8 bits. The unsigned operand is moved by 128 and read as signed, and so is its zero point.
// CHECK-LABEL: @main
func.func @main(%x: tensor<8x300xui8>, %w: tensor<300x5xi8>) -> tensor<8x5xi32> {
  // CHECK: [[F:%.*]] = stablehlo.xor %x
  // CHECK: [[X:%.*]] = stablehlo.bitcast_convert [[F]] : (tensor<8x300xui8>) -> tensor<8x300xi8>
  // CHECK: [[P:%.*]] = stablehlo.dot_general [[X]], %w
  // CHECK: [[S:%.*]] = stablehlo.reduce
  // CHECK: [[T:%.*]] = stablehlo.broadcast_in_dim [[S]], dims = [1]
  // CHECK: [[C:%.*]] = stablehlo.multiply {{%.*}}, [[T]]
  // CHECK: stablehlo.subtract [[P]], [[C]]
  %0 = stablehlo.convert %x : (tensor<8x300xui8>) -> tensor<8x300xi32>
  %1 = stablehlo.constant dense<7> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<8x300xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<8x300xi32>
  %4 = stablehlo.convert %w : (tensor<300x5xi8>) -> tensor<300x5xi32>
  %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<8x300xi32>, tensor<300x5xi32>) -> tensor<8x5xi32>
  return %5 : tensor<8x5xi32>
}

// A kernel that is read at few points: sums that f32 holds.
// CHECK-LABEL: @convolution
func.func private @convolution(%x: tensor<1x2x6x6xi8>, %w: tensor<4x2x3x3xi8>) -> tensor<1x4x6x6xi32> {
  // CHECK: [[R:%.*]] = stablehlo.convolution({{.*}}(tensor<1x2x6x6xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>
  // CHECK: stablehlo.convert [[R]] : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xi32>
  %0 = stablehlo.convert %x : (tensor<1x2x6x6xi8>) -> tensor<1x2x6x6xi32>
  %1 = stablehlo.convert %w : (tensor<4x2x3x3xi8>) -> tensor<4x2x3x3xi32>
  %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x6x6xi32>, tensor<4x2x3x3xi32>) -> tensor<1x4x6x6xi32>
  return %2 : tensor<1x4x6x6xi32>
}

// A larger one: 8 bits, padded with the zero point.
// CHECK-LABEL: @padded
func.func private @padded(%x: tensor<1x128x6x6xi8>, %w: tensor<4x128x3x3xi8>) -> tensor<1x4x6x6xi32> {
  // CHECK: [[X:%.*]] = stablehlo.pad %x
  // CHECK: stablehlo.convolution([[X]], %w) {{.*}} -> tensor<1x4x6x6xi32>
  // CHECK: stablehlo.subtract
  %0 = stablehlo.convert %x : (tensor<1x128x6x6xi8>) -> tensor<1x128x6x6xi32>
  %1 = stablehlo.constant dense<7> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<1x128x6x6xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<1x128x6x6xi32>
  %4 = stablehlo.convert %w : (tensor<4x128x3x3xi8>) -> tensor<4x128x3x3xi32>
  %5 = stablehlo.convolution(%3, %4) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x128x6x6xi32>, tensor<4x128x3x3xi32>) -> tensor<1x4x6x6xi32>
  return %5 : tensor<1x4x6x6xi32>
}

// A zero point that is given, in the operand's own type.
// CHECK-LABEL: @given
func.func private @given(%x: tensor<1x128x6x6xi8>, %z: tensor<i8>, %w: tensor<4x128x3x3xi8>) -> tensor<1x4x6x6xi32> {
  // CHECK: [[X:%.*]] = stablehlo.pad %x
  // CHECK: stablehlo.convolution([[X]], %w) {{.*}} -> tensor<1x4x6x6xi32>
  // CHECK: stablehlo.subtract
  %0 = stablehlo.convert %x : (tensor<1x128x6x6xi8>) -> tensor<1x128x6x6xi32>
  %1 = stablehlo.convert %z : (tensor<i8>) -> tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<1x128x6x6xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<1x128x6x6xi32>
  %4 = stablehlo.convert %w : (tensor<4x128x3x3xi8>) -> tensor<4x128x3x3xi32>
  %5 = stablehlo.convolution(%3, %4) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x128x6x6xi32>, tensor<4x128x3x3xi32>) -> tensor<1x4x6x6xi32>
  return %5 : tensor<1x4x6x6xi32>
}

// Without a zero point it is padded with zeros.
// CHECK-LABEL: @without
func.func private @without(%x: tensor<1x128x6x6xi8>, %w: tensor<4x128x3x3xi8>) -> tensor<1x4x6x6xi32> {
  // CHECK-NOT: stablehlo.pad
  // CHECK: stablehlo.convolution(%x, %w) {{.*}} -> tensor<1x4x6x6xi32>
  %0 = stablehlo.convert %x : (tensor<1x128x6x6xi8>) -> tensor<1x128x6x6xi32>
  %1 = stablehlo.convert %w : (tensor<4x128x3x3xi8>) -> tensor<4x128x3x3xi32>
  %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x128x6x6xi32>, tensor<4x128x3x3xi32>) -> tensor<1x4x6x6xi32>
  return %2 : tensor<1x4x6x6xi32>
}

// A zero point along what is summed stays.
// CHECK-LABEL: @along
func.func private @along(%x: tensor<8x300xui8>, %w: tensor<300x5xi8>, %z: tensor<300xi32>) -> tensor<8x5xi32> {
  // CHECK: stablehlo.dot_general {{.*}}(tensor<8x300xi32>, tensor<300x5xi32>)
  %0 = stablehlo.convert %x : (tensor<8x300xui8>) -> tensor<8x300xi32>
  %2 = stablehlo.broadcast_in_dim %z, dims = [1] : (tensor<300xi32>) -> tensor<8x300xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<8x300xi32>
  %4 = stablehlo.convert %w : (tensor<300x5xi8>) -> tensor<300x5xi32>
  %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<8x300xi32>, tensor<300x5xi32>) -> tensor<8x5xi32>
  return %5 : tensor<8x5xi32>
}

// A zero point that 8 bits do not hold cannot be what is padded with.
// CHECK-LABEL: @beyond
func.func private @beyond(%x: tensor<1x128x6x6xi8>, %w: tensor<4x128x3x3xi8>) -> tensor<1x4x6x6xi32> {
  // CHECK-NOT: stablehlo.pad
  // CHECK: stablehlo.convolution({{.*}}(tensor<1x128x6x6xi32>, tensor<4x128x3x3xi32>)
  %0 = stablehlo.convert %x : (tensor<1x128x6x6xi8>) -> tensor<1x128x6x6xi32>
  %1 = stablehlo.constant dense<128> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<1x128x6x6xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<1x128x6x6xi32>
  %4 = stablehlo.convert %w : (tensor<4x128x3x3xi8>) -> tensor<4x128x3x3xi32>
  %5 = stablehlo.convolution(%3, %4) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x128x6x6xi32>, tensor<4x128x3x3xi32>) -> tensor<1x4x6x6xi32>
  return %5 : tensor<1x4x6x6xi32>
}
