// RUN: gcomp opt %s -p dot-weight-layout | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<8x4xf32>, %y: tensor<1x4xf32>) -> (tensor<8x5xf32>, tensor<1x5xf32>) {
  // CHECK: [[W:%.*]] = gcomp.weight @w
  // CHECK: [[T:%.*]] = stablehlo.transpose [[W]], dims = [1, 0]
  // CHECK: stablehlo.dot_general %x, [[T]], contracting_dims = [1] x [0]
  %0 = gcomp.weight @w : tensor<5x4xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<5x4xf32>) -> tensor<8x5xf32>
  // One row reads [n, k].
  // CHECK: [[V:%.*]] = gcomp.weight @v
  // CHECK: stablehlo.dot_general %y, [[V]], contracting_dims = [1] x [1]
  %2 = gcomp.weight @v : tensor<5x4xf32>
  %3 = stablehlo.dot_general %y, %2, contracting_dims = [1] x [1] : (tensor<1x4xf32>, tensor<5x4xf32>) -> tensor<1x5xf32>
  return %1, %3 : tensor<8x5xf32>, tensor<1x5xf32>
}

// A weight with two readers stays: a copy would double it.
// CHECK-LABEL: @shared
func.func private @shared(%x: tensor<8x4xf32>) -> (tensor<8x5xf32>, tensor<5x4xf32>) {
  // CHECK-NOT: stablehlo.transpose
  %0 = gcomp.weight @s : tensor<5x4xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<5x4xf32>) -> tensor<8x5xf32>
  return %1, %0 : tensor<8x5xf32>, tensor<5x4xf32>
}
