// RUN: gcomp opt %s -p "raise-rotary" | filecheck %s

// Each half turned by itself.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  // CHECK: stablehlo.composite "gcomp.rotary" %x
  %0 = stablehlo.slice %x [0:3, 0:4] : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.slice %x [0:3, 4:8] : (tensor<3x8xf32>) -> tensor<3x4xf32>
  %2 = stablehlo.multiply %0, %c : tensor<3x4xf32>
  %3 = stablehlo.multiply %1, %s : tensor<3x4xf32>
  %4 = stablehlo.subtract %2, %3 : tensor<3x4xf32>
  %5 = stablehlo.multiply %1, %c : tensor<3x4xf32>
  %6 = stablehlo.multiply %0, %s : tensor<3x4xf32>
  %7 = stablehlo.add %5, %6 : tensor<3x4xf32>
  %8 = stablehlo.concatenate %4, %7, dim = 1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
  return %8 : tensor<3x8xf32>
}

// Along another dimension, with another table in the second half, and of a third of the numbers.
// CHECK-LABEL: func.func private @others
func.func private @others(%x: tensor<8x8xf32>, %c: tensor<4x8xf32>, %s: tensor<4x8xf32>, %d: tensor<8x4xf32>, %e: tensor<8x4xf32>, %f: tensor<8x4xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK-NOT: gcomp.rotary
  // CHECK: return
  %0 = stablehlo.slice %x [0:4, 0:8] : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.slice %x [4:8, 0:8] : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.multiply %0, %c : tensor<4x8xf32>
  %3 = stablehlo.multiply %1, %s : tensor<4x8xf32>
  %4 = stablehlo.subtract %2, %3 : tensor<4x8xf32>
  %5 = stablehlo.multiply %1, %c : tensor<4x8xf32>
  %6 = stablehlo.multiply %0, %s : tensor<4x8xf32>
  %7 = stablehlo.add %5, %6 : tensor<4x8xf32>
  %8 = stablehlo.concatenate %4, %7, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %10 = stablehlo.slice %x [0:8, 0:4] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %11 = stablehlo.slice %x [0:8, 4:8] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %12 = stablehlo.multiply %10, %d : tensor<8x4xf32>
  %13 = stablehlo.multiply %11, %e : tensor<8x4xf32>
  %14 = stablehlo.subtract %12, %13 : tensor<8x4xf32>
  %15 = stablehlo.multiply %11, %f : tensor<8x4xf32>
  %16 = stablehlo.multiply %10, %e : tensor<8x4xf32>
  %17 = stablehlo.add %15, %16 : tensor<8x4xf32>
  %18 = stablehlo.concatenate %14, %17, dim = 1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %8, %18 : tensor<8x8xf32>, tensor<8x8xf32>
}
