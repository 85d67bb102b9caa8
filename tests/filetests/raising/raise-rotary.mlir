// RUN: gcomp opt %s -p "raise-rotary" | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x3x8xf32>, %c: tensor<3x8xf32>, %s: tensor<3x8xf32>) -> tensor<2x3x8xf32> {
  // CHECK: stablehlo.composite "gcomp.rotary" %x
  %0 = stablehlo.slice %x [0:2, 0:3, 0:4] : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %1 = stablehlo.slice %x [0:2, 0:3, 4:8] : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %2 = stablehlo.broadcast_in_dim %c, dims = [1, 2] : (tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %3 = stablehlo.multiply %x, %2 : tensor<2x3x8xf32>
  %4 = stablehlo.negate %1 : tensor<2x3x4xf32>
  %5 = stablehlo.concatenate %4, %0, dim = 2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  %6 = stablehlo.broadcast_in_dim %s, dims = [1, 2] : (tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %7 = stablehlo.multiply %5, %6 : tensor<2x3x8xf32>
  %8 = stablehlo.add %3, %7 : tensor<2x3x8xf32>
  return %8 : tensor<2x3x8xf32>
}

// The halves in the other order.
// CHECK-LABEL: @unturned
func.func private @unturned(%x: tensor<3x8xf32>, %c: tensor<3x8xf32>, %s: tensor<3x8xf32>) -> tensor<3x8xf32> {
  // CHECK-NOT: gcomp.rotary
  // CHECK: stablehlo.add
  %0 = stablehlo.slice %x [0:3, 0:4] : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.slice %x [0:3, 4:8] : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %3 = stablehlo.multiply %x, %c : tensor<3x8xf32>
  %4 = stablehlo.negate %0 : tensor<3x4xf32>
  %5 = stablehlo.concatenate %4, %1, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
  %7 = stablehlo.multiply %5, %s : tensor<3x8xf32>
  %8 = stablehlo.add %3, %7 : tensor<3x8xf32>
  return %8 : tensor<3x8xf32>
}

// Where the halves meet is not known.
// CHECK-LABEL: @open
func.func private @open(%x: tensor<3x?xf32>, %c: tensor<3x?xf32>, %s: tensor<3x?xf32>) -> tensor<3x?xf32> {
  // CHECK-NOT: gcomp.rotary
  // CHECK: stablehlo.add
  %0 = stablehlo.slice %x [0:3, 0:4] : (tensor<3x?xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.slice %x [0:3, 4:8] : (tensor<3x?xf32>) -> tensor<3x4xf32>
  %3 = stablehlo.multiply %x, %c : tensor<3x?xf32>
  %4 = stablehlo.negate %1 : tensor<3x4xf32>
  %5 = stablehlo.concatenate %4, %0, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x?xf32>
  %7 = stablehlo.multiply %5, %s : tensor<3x?xf32>
  %8 = stablehlo.add %3, %7 : tensor<3x?xf32>
  return %8 : tensor<3x?xf32>
}

// The halves of one row, for all rows.
// CHECK-LABEL: @row
func.func private @row(%x: tensor<2x3x8xf32>, %c: tensor<2x3x8xf32>, %s: tensor<2x1x8xf32>) -> tensor<2x3x8xf32> {
  // CHECK-NOT: gcomp.rotary
  // CHECK: stablehlo.add
  %0 = stablehlo.slice %x [0:2, 2:3, 0:4] : (tensor<2x3x8xf32>) -> tensor<2x1x4xf32>
  %1 = stablehlo.slice %x [0:2, 2:3, 4:8] : (tensor<2x3x8xf32>) -> tensor<2x1x4xf32>
  %3 = stablehlo.multiply %x, %c : tensor<2x3x8xf32>
  %4 = stablehlo.negate %1 : tensor<2x1x4xf32>
  %5 = stablehlo.concatenate %4, %0, dim = 2 : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x1x8xf32>
  %6 = stablehlo.multiply %5, %s : tensor<2x1x8xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<2x1x8xf32>) -> tensor<2x3x8xf32>
  %8 = stablehlo.add %3, %7 : tensor<2x3x8xf32>
  return %8 : tensor<2x3x8xf32>
}
