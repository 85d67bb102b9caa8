// RUN: gcomp opt %s -p "fuse{target=x86-64-v3}" | filecheck %s

// A product takes each element of what is padded many times, and would find out each time whether it is padding. A sum
// that takes it once does so too, but need not write what is padded to memory.
// CHECK-LABEL: @main
// CHECK: kernel.launch loop
// CHECK-NEXT: stablehlo.constant
// CHECK-NEXT: stablehlo.pad
// CHECK: kernel.launch matmul
// CHECK-NEXT: stablehlo.dot_general
// CHECK: kernel.launch reduction
// CHECK: stablehlo.pad
// CHECK-NEXT: stablehlo.reduce
func.func @main(%x: tensor<63x512xf32>, %y: tensor<63x500xf32>, %w: tensor<512x512xf32>) -> (tensor<64x512xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<63x512xf32>, tensor<f32>) -> tensor<64x512xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  %2 = stablehlo.pad %y, %zero, low = [0, 0], high = [1, 12], interior = [0, 0] : (tensor<63x500xf32>, tensor<f32>) -> tensor<64x512xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x512xf32>, tensor<f32>) -> tensor<64xf32>
  return %1, %3 : tensor<64x512xf32>, tensor<64xf32>
}
