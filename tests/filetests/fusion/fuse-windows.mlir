// RUN: gcomp opt %s -p "fuse{target=x86-64-v3}" | filecheck %s

// What pads the input of a window is written for all of its points, and a reduction does not compute the window in
// each of its passes.
// CHECK-LABEL: @main
// CHECK: kernel.launch loop
// CHECK: stablehlo.pad
// CHECK: kernel.launch loop
// CHECK: stablehlo.slice
// CHECK: kernel.launch reduction
// CHECK-NOT: stablehlo.slice
// CHECK: stablehlo.reduce
func.func @main(%x: tensor<62x512xf32>, %z: tensor<f32>) -> (tensor<61xf32>, tensor<61x512xf32>) {
  %0 = stablehlo.negate %x : tensor<62x512xf32>
  %1 = stablehlo.pad %0, %z, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<62x512xf32>, tensor<f32>) -> tensor<64x512xf32>
  %2 = stablehlo.slice %1 [0:61, 0:512] : (tensor<64x512xf32>) -> tensor<61x512xf32>
  %3 = stablehlo.slice %1 [1:62, 0:512] : (tensor<64x512xf32>) -> tensor<61x512xf32>
  %4 = stablehlo.slice %1 [2:63, 0:512] : (tensor<64x512xf32>) -> tensor<61x512xf32>
  %5 = stablehlo.slice %1 [3:64, 0:512] : (tensor<64x512xf32>) -> tensor<61x512xf32>
  %6 = stablehlo.add %2, %3 : tensor<61x512xf32>
  %7 = stablehlo.add %6, %4 : tensor<61x512xf32>
  %8 = stablehlo.add %7, %5 : tensor<61x512xf32>
  %9 = stablehlo.reduce(%8 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<61x512xf32>, tensor<f32>) -> tensor<61xf32>
  %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<61xf32>) -> tensor<61x512xf32>
  %11 = stablehlo.subtract %8, %10 : tensor<61x512xf32>
  return %9, %11 : tensor<61xf32>, tensor<61x512xf32>
}
