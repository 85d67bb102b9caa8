// RUN: gcomp opt %s --split -p fuse,pack-convolution-weights | filecheck %s

// Panels of 32 features, which the kernel sees as the window that they are.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x9x9x8xf32>) -> tensor<1x7x7x64xf32> {
  // CHECK-NEXT: [[W:%.*]] = gcomp.weight @w
  // CHECK-NEXT: [[CUT:%.*]] = stablehlo.reshape [[W]] : (tensor<3x3x8x64xf32>) -> tensor<3x3x8x2x32xf32>
  // CHECK-NEXT: [[PANELS:%.*]] = stablehlo.transpose [[CUT]], dims = [3, 0, 1, 2, 4]
  // CHECK-NEXT: kernel.launch convolution "convolution" ({{.*}} = %x, [[P:%.*]] = [[PANELS]])
  // CHECK-NEXT: [[T:%.*]] = stablehlo.transpose [[P]], dims = [1, 2, 3, 0, 4]
  // CHECK-NEXT: [[R:%.*]] = stablehlo.reshape [[T]] : (tensor<3x3x8x2x32xf32>) -> tensor<3x3x8x64xf32>
  // CHECK-NEXT: stablehlo.convolution({{.*}}, [[R]])
  %0 = gcomp.weight @w : tensor<3x3x8x64xf32>
  %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x9x8xf32>, tensor<3x3x8x64xf32>) -> tensor<1x7x7x64xf32>
  return %1 : tensor<1x7x7x64xf32>
}

// -----

// A panel lies within one group.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x9x8xf32>) -> tensor<1x7x64xf32> {
  // CHECK: [[CUT:%.*]] = stablehlo.reshape {{.*}} : (tensor<3x4x64xf32>) -> tensor<3x4x2x32xf32>
  // CHECK-NEXT: stablehlo.transpose [[CUT]], dims = [2, 0, 1, 3]
  %0 = gcomp.weight @groups : tensor<3x4x64xf32>
  %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
    : (tensor<1x9x8xf32>, tensor<3x4x64xf32>) -> tensor<1x7x64xf32>
  return %1 : tensor<1x7x64xf32>
}

// -----

// One panel lies as the weight does; what an op reads as well would be stored twice.
// CHECK-LABEL: @main
// CHECK-NOT: stablehlo.transpose
func.func @main(%x: tensor<1x9x8xf32>) -> (tensor<1x7x16xf32>, tensor<1x7x64xf32>, tensor<3x8x64xf32>) {
  %0 = gcomp.weight @one : tensor<3x8x16xf32>
  %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x8xf32>, tensor<3x8x16xf32>) -> tensor<1x7x16xf32>
  %4 = gcomp.weight @both : tensor<3x8x64xf32>
  %5 = stablehlo.convolution(%x, %4) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x8xf32>, tensor<3x8x64xf32>) -> tensor<1x7x64xf32>
  return %1, %5, %4 : tensor<1x7x16xf32>, tensor<1x7x64xf32>, tensor<3x8x64xf32>
}
