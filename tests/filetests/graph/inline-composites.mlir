// RUN: gcomp opt %s -p inline-composites,dce | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.multiply %x, %x
  // CHECK-NEXT: return [[R]]
  %0 = stablehlo.composite "my.square" %x {decomposition = @square} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-NOT: @square
func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
