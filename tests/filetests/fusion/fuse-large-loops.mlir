// RUN: gcomp opt %s -p fuse | filecheck %s

// Large ones stay apart: the launch is little of their time, and each could end the life of what it reads.
// CHECK-LABEL: @main
// CHECK-COUNT-2: kernel.launch loop
func.func @main(%x: tensor<512x512xf32>, %y: tensor<262144xi32>) -> (tensor<512x512xf32>, tensor<262144xi32>) {
  %0 = stablehlo.exponential %x : tensor<512x512xf32>
  %1 = stablehlo.multiply %y, %y : tensor<262144xi32>
  return %0, %1 : tensor<512x512xf32>, tensor<262144xi32>
}
