// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: dim-C1: dimension 'batch*2' is not canonical, write '2*batch'
func.func @main(%x: tensor<?xf32, ["batch"]>) -> tensor<i64> {
  %d = gcomp.dim "batch*2" : tensor<i64>
  return %d : tensor<i64>
}
// -----
// CHECK: why: dim-C1:
func.func @main(%x: tensor<?xf32, ["batch"]>) -> tensor<i64> {
  %d = gcomp.dim "batch +" : tensor<i64>
  return %d : tensor<i64>
}
// -----
// CHECK: why: dim-C2: the result tensor<f32> is not a scalar of integer type
func.func @main(%x: tensor<?xf32, ["batch"]>) -> tensor<f32> {
  %d = gcomp.dim "batch" : tensor<f32>
  return %d : tensor<f32>
}
