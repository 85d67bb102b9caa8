// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: broadcast_in_dim-C5: size 2 does not broadcast to 4
func.func @main(%x: tensor<2xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<2xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
// -----
// CHECK: why: concatenate-C: result type is tensor<?xf32, ["n"]>, expected tensor<?xf32, ["2*n"]>
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
// -----
// CHECK: why: pad-C1: the padding value is not a rank 0 tensor of the operand's element type
func.func @main(%x: tensor<4xf32>, %z: tensor<f64>) -> tensor<5xf32> {
  %0 = stablehlo.pad %x, %z, low = [0], high = [1], interior = [0] : (tensor<4xf32>, tensor<f64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
// -----
// CHECK: why: reshape-C2: 6*batch elements do not fit tensor<?xf32, ["6*batch + 1"]>
// No batch makes 6*batch equal to 6*batch + 1.
func.func @main(%x: tensor<?x6xf32, ["batch", "6"]>) -> tensor<?xf32, ["6*batch + 1"]> {
  %0 = stablehlo.reshape %x : (tensor<?x6xf32, ["batch", "6"]>) -> tensor<?xf32, ["6*batch + 1"]>
  return %0 : tensor<?xf32, ["6*batch + 1"]>
}
// -----
// CHECK: why: reverse-C2: [0, 0] are not distinct dimensions of rank 2
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.reverse %x, dims = [0, 0] : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// CHECK: why: slice-C3: slice 0:seq + 1 does not lie within a dimension of size seq
func.func @main(%x: tensor<?xf32, ["seq"]>) -> tensor<?xf32, ["seq + 1"]> {
  %0 = stablehlo.slice %x [0:"seq + 1"] : (tensor<?xf32, ["seq"]>) -> tensor<?xf32, ["seq + 1"]>
  return %0 : tensor<?xf32, ["seq + 1"]>
}
// -----
// CHECK: why: transpose-C: result type is tensor<2x3xf32>, expected tensor<3x2xf32>
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
