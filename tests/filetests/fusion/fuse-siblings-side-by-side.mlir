// RUN: gcomp opt %s -p fuse | filecheck %s

// Two that read one value are found though each has its own way to go after it: neither reads it behind the other's end.
// CHECK-LABEL: @main
// CHECK: kernel.launch loop
// CHECK-NOT: kernel.launch
func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = stablehlo.negate %x : tensor<64x64xf32>
  %1 = stablehlo.abs %x : tensor<64x64xf32>
  %2 = stablehlo.exponential %1 : tensor<64x64xf32>
  %3 = stablehlo.multiply %0, %0 : tensor<64x64xf32>
  return %2, %3 : tensor<64x64xf32>, tensor<64x64xf32>
}
