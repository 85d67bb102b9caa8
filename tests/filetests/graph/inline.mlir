// RUN: gcomp opt %s -p inline,dce --check-each | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: [[S:%.*]] = stablehlo.subtract %x, %y
  // CHECK-NEXT: [[M:%.*]] = stablehlo.multiply [[S]], [[S]]
  %0:2 = func.call @outer(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: stablehlo.if
  %1 = "stablehlo.if"(%p) ({
    // CHECK: [[N:%.*]] = stablehlo.multiply %y, %y
    // CHECK-NEXT: stablehlo.return [[N]]
    %2 = func.call @square(%0#0) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0#1, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-NOT: func.call
// CHECK-NOT: @outer
// CHECK-NOT: @square
func.func private @outer(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.subtract %x, %y : tensor<4xf32>
  %1 = func.call @square(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %y, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
