// RUN: gcomp opt %s -p fold-constants | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: [[C:%.*]] = stablehlo.constant dense<[1.0, 1.0, 3.0, 5.0]>
  // CHECK-NEXT: [[R:%.*]] = stablehlo.add %x, [[C]]
  // CHECK-NEXT: return [[R]]
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = stablehlo.constant dense<[0.0, -1.0, 0.0, 1.0]> : tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  %3 = stablehlo.add %x, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// A large result from little is not stored.
// CHECK-LABEL: @growth
func.func private @growth() -> tensor<1000x1000xf32> {
  // CHECK: stablehlo.iota
  // CHECK: stablehlo.sine
  %0 = stablehlo.iota dim = 0 : tensor<1000x1000xf32>
  %1 = stablehlo.sine %0 : tensor<1000x1000xf32>
  return %1 : tensor<1000x1000xf32>
}
