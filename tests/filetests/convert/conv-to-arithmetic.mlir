// RUN: gcomp opt %s -p conv-to-arithmetic | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<1x4x4x8xf32>, %w: tensor<1x1x8x16xf32>) -> tensor<1x2x2x16xf32> {
  // CHECK: [[P:%.*]] = stablehlo.slice %x [0:1, 0:4:2, 0:4:2, 0:8]
  // CHECK: [[M:%.*]] = stablehlo.reshape %w
  // CHECK: stablehlo.dot_general [[P]], [[M]], contracting_dims = [3] x [0]
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2]} : (tensor<1x4x4x8xf32>, tensor<1x1x8x16xf32>) -> tensor<1x2x2x16xf32>
  return %0 : tensor<1x2x2x16xf32>
}

// CHECK-LABEL: @depthwise
func.func private @depthwise(%x: tensor<1x4x4x8xf32>, %w: tensor<1x3x1x8xf32>) -> tensor<1x4x4x8xf32> {
  // CHECK: [[P:%.*]] = stablehlo.pad %x, {{.*}}, low = [0, 0, 1, 0], high = [0, 0, 1, 0]
  // CHECK: stablehlo.slice [[P]] [0:1, 0:4, 0:4, 0:8]
  // CHECK: stablehlo.slice [[P]] [0:1, 0:4, 1:5, 0:8]
  // CHECK: stablehlo.add
  // CHECK: stablehlo.slice [[P]] [0:1, 0:4, 2:6, 0:8]
  // CHECK: stablehlo.add
  // CHECK-NOT: convolution
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[0, 0], [1, 1]]} {feature_group_count = 8 : i64} : (tensor<1x4x4x8xf32>, tensor<1x3x1x8xf32>) -> tensor<1x4x4x8xf32>
  return %0 : tensor<1x4x4x8xf32>
}

// A result of no elements reads nothing: there would be no slice for it.
// CHECK-LABEL: @empty
func.func private @empty(%x: tensor<1x1x1xf32>, %w: tensor<2x1x1xf32>) -> tensor<1x0x1xf32> {
  // CHECK: stablehlo.convolution
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {rhs_dilate = [2]} : (tensor<1x1x1xf32>, tensor<2x1x1xf32>) -> tensor<1x0x1xf32>
  return %0 : tensor<1x0x1xf32>
}

// One input channel for all output channels.
// CHECK-LABEL: @one_channel
func.func private @one_channel(%x: tensor<1x4x1xf32>, %w: tensor<3x1x5xf32>) -> tensor<1x4x5xf32> {
  // CHECK: stablehlo.pad %x
  // CHECK-NOT: convolution
  // CHECK: return
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} : (tensor<1x4x1xf32>, tensor<3x1x5xf32>) -> tensor<1x4x5xf32>
  return %0 : tensor<1x4x5xf32>
}

// Three output channels for each input channel, which lie beside each other.
// CHECK-LABEL: @several_per_channel
func.func private @several_per_channel(%x: tensor<?x4x2xf32, ["n", "4", "2"]>, %w: tensor<2x1x6xf32>) -> tensor<?x3x6xf32, ["n", "3", "6"]> {
  // CHECK: [[B:%.*]] = stablehlo.broadcast_in_dim %x, dims = [0, 1, 2] : (tensor<?x4x2xf32, {{.*}}>) -> tensor<?x4x2x3xf32, {{.*}}>
  // CHECK: [[R:%.*]] = stablehlo.reshape [[B]] : (tensor<?x4x2x3xf32, {{.*}}>) -> tensor<?x4x6xf32, {{.*}}>
  // CHECK: stablehlo.slice [[R]]
  // CHECK-NOT: convolution
  // CHECK: return
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {feature_group_count = 2 : i64} : (tensor<?x4x2xf32, ["n", "4", "2"]>, tensor<2x1x6xf32>) -> tensor<?x3x6xf32, ["n", "3", "6"]>
  return %0 : tensor<?x3x6xf32, ["n", "3", "6"]>
}
