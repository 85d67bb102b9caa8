// RUN: gcomp opt %s -p fuse | filecheck %s

// Two small loops over as many elements are one, though they read nothing in common: a launch takes longer than either.
// CHECK-LABEL: @main
// CHECK: kernel.launch loop
// CHECK-NOT: kernel.launch
func.func @main(%x: tensor<2x3xf32>, %y: tensor<6xi32>) -> (tensor<2x3xf32>, tensor<6xi32>) {
  %0 = stablehlo.exponential %x : tensor<2x3xf32>
  %1 = stablehlo.multiply %y, %y : tensor<6xi32>
  return %0, %1 : tensor<2x3xf32>, tensor<6xi32>
}
