// RUN: gcomp opt %s -p fold-constants | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: [[C:%.*]] = stablehlo.constant dense<[1.0, 1.0, 3.0, 5.0]>
  // CHECK-NEXT: [[R:%.*]] = stablehlo.add %x, [[C]]
  // CHECK-NEXT: return [[R]]
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = stablehlo.constant dense<[0.0, -1.0, 0.0, 1.0]> : tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %3 = stablehlo.add %x, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// What nothing else reads goes, and what is read elsewhere stays.
// CHECK-LABEL: @shared
func.func private @shared() -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK-NEXT: [[B:%.*]] = stablehlo.constant dense<[3.0, 4.0]>
  // CHECK-NEXT: [[C:%.*]] = stablehlo.constant dense<[4.0, 6.0]>
  // CHECK-NEXT: return [[B]], [[C]]
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2xf32>
  return %1, %2 : tensor<2xf32>, tensor<2xf32>
}

// A large result from little is not stored.
// CHECK-LABEL: @growth
func.func private @growth() -> tensor<1000x1000xf32> {
  // CHECK: stablehlo.iota
  // CHECK: stablehlo.sine
  %0 = stablehlo.iota dim = 0 : tensor<1000x1000xf32>
  %1 = stablehlo.sine %0 : tensor<1000x1000xf32>
  return %1 : tensor<1000x1000xf32>
}

// A kernel grows: it is convolved in f32.
// CHECK-LABEL: @kernel
func.func private @kernel(%x: tensor<1x8x6x6xf32>) -> tensor<1x64x4x4xf32> {
  // CHECK-NOT: stablehlo.convert
  // CHECK: stablehlo.convolution
  %0 = stablehlo.constant dense<3> : tensor<64x8x3x3xi8>
  %1 = stablehlo.convert %0 : (tensor<64x8x3x3xi8>) -> tensor<64x8x3x3xf32>
  %2 = stablehlo.convolution(%x, %1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x6x6xf32>, tensor<64x8x3x3xf32>) -> tensor<1x64x4x4xf32>
  return %2 : tensor<1x64x4x4xf32>
}

// What has no elements is known, whatever it is made of.
// CHECK-LABEL: @empty
func.func private @empty(%x: tensor<0x3x1xf32>, %n: tensor<4xf32>) -> (tensor<0x3x2xf32>, tensor<4xf32>) {
  // CHECK-NEXT: [[E:%.*]] = stablehlo.constant dense<> : tensor<0x3x2xf32>
  // CHECK-NEXT: [[N:%.*]] = stablehlo.negate
  // CHECK-NEXT: return [[E]], [[N]]
  %0 = stablehlo.transpose %x, dims = [2, 1, 0] : (tensor<0x3x1xf32>) -> tensor<1x3x0xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [2, 1, 0] : (tensor<1x3x0xf32>) -> tensor<0x3x2xf32>
  %2 = stablehlo.negate %n : tensor<4xf32>
  return %1, %2 : tensor<0x3x2xf32>, tensor<4xf32>
}

// Of equal elements one is kept, however many the result has: variances that are all 1, as those of untrained models.
// CHECK-LABEL: @alike
func.func private @alike() -> tensor<1000x1000xf32> {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.constant dense<3.0> : tensor<1000x1000xf32>
  // CHECK-NEXT: return [[R]]
  %0 = stablehlo.constant dense<8.0> : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1000x1000xf32>
  %2 = stablehlo.constant dense<1.0> : tensor<1000x1000xf32>
  %3 = stablehlo.add %1, %2 : tensor<1000x1000xf32>
  %4 = stablehlo.sqrt %3 : tensor<1000x1000xf32>
  return %4 : tensor<1000x1000xf32>
}
