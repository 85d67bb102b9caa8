// RUN: gcomp opt %s -p "fuse{target=x86-64-v3}" | filecheck %s

// A constant that a window computes for itself is there for others, too.
// CHECK-LABEL: @main
// CHECK: %[[Z:.*]] = stablehlo.constant dense<0.0>
// CHECK: stablehlo.rng %[[Z]]
// CHECK: kernel.launch loop
// CHECK: stablehlo.slice
func.func @main(%x: tensor<62x8xf32>) -> (tensor<61x8xf32>, tensor<2xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %n = stablehlo.constant dense<2> : tensor<1xi64>
  %r = stablehlo.rng %z, %one, %n, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
  %1 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<61x8xf32>
  %2 = stablehlo.slice %x [0:61, 0:8] : (tensor<62x8xf32>) -> tensor<61x8xf32>
  %3 = stablehlo.slice %x [1:62, 0:8] : (tensor<62x8xf32>) -> tensor<61x8xf32>
  %4 = stablehlo.slice %x [0:61, 0:8] : (tensor<62x8xf32>) -> tensor<61x8xf32>
  %5 = stablehlo.slice %x [1:62, 0:8] : (tensor<62x8xf32>) -> tensor<61x8xf32>
  %6 = stablehlo.maximum %2, %1 : tensor<61x8xf32>
  %7 = stablehlo.add %6, %3 : tensor<61x8xf32>
  %8 = stablehlo.add %7, %4 : tensor<61x8xf32>
  %9 = stablehlo.add %8, %5 : tensor<61x8xf32>
  return %9, %r : tensor<61x8xf32>, tensor<2xf32>
}
