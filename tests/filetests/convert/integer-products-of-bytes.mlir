// RUN: gcomp opt %s -p 'integer-products{form="bytes"}' | filecheck %s

// Weights are signed, and what they multiply is unsigned: signed values are moved by 128, and so is their zero point.
// CHECK-LABEL: @main
func.func @main(%x: tensor<8x4xi8>) -> tensor<8x2xi32> {
  // CHECK: [[W:%.*]] = stablehlo.constant dense<[[1, 2], [3, 4], [-5, -6], [127, -128]]> : tensor<4x2xi8>
  // CHECK: [[F:%.*]] = stablehlo.xor %x
  // CHECK: [[X:%.*]] = stablehlo.bitcast_convert [[F]] : (tensor<8x4xi8>) -> tensor<8x4xui8>
  // CHECK: [[P:%.*]] = stablehlo.dot_general [[X]], [[W]]
  // CHECK-SAME: (tensor<8x4xui8>, tensor<4x2xi8>) -> tensor<8x2xi32>
  // CHECK: stablehlo.subtract [[P]]
  %w = stablehlo.constant dense<[[1, 2], [3, 4], [-5, -6], [127, -128]]> : tensor<4x2xi8>
  %0 = stablehlo.convert %x : (tensor<8x4xi8>) -> tensor<8x4xi32>
  %1 = stablehlo.constant dense<7> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<8x4xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<8x4xi32>
  %4 = stablehlo.convert %w : (tensor<4x2xi8>) -> tensor<4x2xi32>
  %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<8x4xi32>, tensor<4x2xi32>) -> tensor<8x2xi32>
  return %5 : tensor<8x2xi32>
}

// A convolution is padded by its zero point, and channels that the kernel multiplies by 0 fill up a word.
// CHECK-LABEL: @padded
func.func private @padded(%x: tensor<1x6x6x1xui8>) -> tensor<1x6x6x1xi32> {
  // CHECK: [[X:%.*]] = stablehlo.pad %x, {{%.*}}, low = [0, 1, 1, 0], high = [0, 1, 1, 3]
  // CHECK: stablehlo.convolution([[X]], {{%.*}}(tensor<1x8x8x4xui8>, tensor<3x3x4x1xi8>) -> tensor<1x6x6x1xi32>
  %w = stablehlo.constant dense<1> : tensor<3x3x1x1xi8>
  %0 = stablehlo.convert %x : (tensor<1x6x6x1xui8>) -> tensor<1x6x6x1xi32>
  %1 = stablehlo.constant dense<7> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<1x6x6x1xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<1x6x6x1xi32>
  %4 = stablehlo.convert %w : (tensor<3x3x1x1xi8>) -> tensor<3x3x1x1xi32>
  %5 = stablehlo.convolution(%3, %4) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x6x1xi32>, tensor<3x3x1x1xi32>) -> tensor<1x6x6x1xi32>
  return %5 : tensor<1x6x6x1xi32>
}

// Of two results that are multiplied, f32 takes what it holds.
// CHECK-LABEL: @unknown
func.func private @unknown(%x: tensor<8x4xui8>, %w: tensor<4x2xui8>) -> tensor<8x2xi32> {
  // CHECK: stablehlo.dot_general {{.*}} (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %0 = stablehlo.convert %x : (tensor<8x4xui8>) -> tensor<8x4xi32>
  %1 = stablehlo.convert %w : (tensor<4x2xui8>) -> tensor<4x2xi32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<8x4xi32>, tensor<4x2xi32>) -> tensor<8x2xi32>
  return %2 : tensor<8x2xi32>
}

// What a kernel's zero point contributes is it times the sum of all that a window reads.
// CHECK-LABEL: @centered
func.func private @centered(%x: tensor<1x6x6x4xui8>) -> tensor<1x6x6x2xi32> {
  // CHECK: [[X:%.*]] = stablehlo.pad %x, {{%.*}}, low = [0, 1, 1, 0], high = [0, 1, 1, 0]
  // CHECK: [[P:%.*]] = stablehlo.convolution([[X]], {{%.*}}(tensor<1x8x8x4xui8>, tensor<3x3x4x2xi8>) -> tensor<1x6x6x2xi32>
  // CHECK: [[C:%.*]] = stablehlo.convert [[X]] : (tensor<1x8x8x4xui8>) -> tensor<1x8x8x4xi32>
  // CHECK: stablehlo.reduce([[C]] init
  // CHECK: stablehlo.reduce_window
  // CHECK: stablehlo.subtract [[P]]
  %w = stablehlo.constant dense<200> : tensor<3x3x4x2xui8>
  %0 = stablehlo.convert %x : (tensor<1x6x6x4xui8>) -> tensor<1x6x6x4xi32>
  %1 = stablehlo.constant dense<7> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<1x6x6x4xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<1x6x6x4xi32>
  %4 = stablehlo.convert %w : (tensor<3x3x4x2xui8>) -> tensor<3x3x4x2xi32>
  %5 = stablehlo.constant dense<[121, 30]> : tensor<2xi32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [3] : (tensor<2xi32>) -> tensor<3x3x4x2xi32>
  %7 = stablehlo.subtract %4, %6 : tensor<3x3x4x2xi32>
  %8 = stablehlo.convolution(%3, %7) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x6x4xi32>, tensor<3x3x4x2xi32>) -> tensor<1x6x6x2xi32>
  return %8 : tensor<1x6x6x2xi32>
}

// Weights are known, too, where they are a part of others, in another order.
// CHECK-LABEL: @part
func.func private @part(%x: tensor<8x4xui8>) -> tensor<8x2xi32> {
  // CHECK: stablehlo.dot_general {{.*}} (tensor<8x4xui8>, tensor<2x4xi8>) -> tensor<8x2xi32>
  %w = stablehlo.constant dense<-3> : tensor<2x4x2xi8>
  %0 = stablehlo.transpose %w, dims = [0, 2, 1] : (tensor<2x4x2xi8>) -> tensor<2x2x4xi8>
  %1 = stablehlo.slice %0 [1:2, 0:2, 0:4] : (tensor<2x2x4xi8>) -> tensor<1x2x4xi8>
  %2 = stablehlo.reshape %1 : (tensor<1x2x4xi8>) -> tensor<2x4xi8>
  %3 = stablehlo.convert %2 : (tensor<2x4xi8>) -> tensor<2x4xi32>
  %4 = stablehlo.convert %x : (tensor<8x4xui8>) -> tensor<8x4xi32>
  %5 = stablehlo.dot_general %4, %3, contracting_dims = [1] x [1] : (tensor<8x4xi32>, tensor<2x4xi32>) -> tensor<8x2xi32>
  return %5 : tensor<8x2xi32>
}
