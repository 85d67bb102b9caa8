// RUN: gcomp opt %s -p dce | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: [[R:%.*]] = {{(func.)?}}call @used
  // CHECK-NEXT: return [[R]]
  %0 = stablehlo.exponential %x : tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  %2 = func.call @used(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK: @used
func.func private @used(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-NOT: @unused
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
