// RUN: gcomp opt %s -p "fuse{target=x86-64-v3}" | filecheck %s --check-prefixes=CHECK,CPU
// RUN: gcomp opt %s -p "fuse{target=sm_90}" | filecheck %s --check-prefixes=CHECK,GPU

// A processor's product writes its result into what pads it, which what reads it does not share a kernel with. What
// leaves elements out, puts some between them, or is padded by the product itself, is no border.
// CHECK-LABEL: @main
// CHECK: kernel.launch matmul
// CHECK-NEXT: stablehlo.dot_general
// CPU-NEXT: stablehlo.pad
// CHECK: kernel.launch loop
// GPU-NEXT: stablehlo.pad
// CHECK: stablehlo.negate
// CHECK: kernel.launch matmul
// CHECK-NEXT: stablehlo.dot_general
// CHECK-NEXT: stablehlo.return
// CHECK: kernel.launch loop
// CHECK: stablehlo.pad
func.func @main(%x: tensor<64x512xf32>, %y: tensor<32x512xf32>, %w: tensor<512x512xf32>, %z: tensor<f32>) -> (tensor<66x512xf32>, tensor<66x512xf32>, tensor<63x512xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32>
  %1 = stablehlo.pad %0, %z, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<64x512xf32>, tensor<f32>) -> tensor<66x512xf32>
  %2 = stablehlo.negate %1 : tensor<66x512xf32>
  %5 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<32x512xf32>, tensor<512x512xf32>) -> tensor<32x512xf32>
  %6 = stablehlo.pad %5, %z, low = [0, 0], high = [0, 0], interior = [1, 0] : (tensor<32x512xf32>, tensor<f32>) -> tensor<63x512xf32>
  return %1, %2, %6 : tensor<66x512xf32>, tensor<66x512xf32>, tensor<63x512xf32>
}
