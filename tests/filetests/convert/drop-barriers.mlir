// RUN: gcomp opt %s -p drop-barriers | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>, %y: tensor<3xi32>) -> (tensor<3xi32>, tensor<4xf32>) {
  // CHECK-NOT: optimization_barrier
  // CHECK: [[T:%.*]] = stablehlo.tanh %x
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<4xf32>, tensor<3xi32>
  %1 = stablehlo.tanh %0#0 : tensor<4xf32>
  // CHECK: return %y, [[T]]
  return %0#1, %1 : tensor<3xi32>, tensor<4xf32>
}
