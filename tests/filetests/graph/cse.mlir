// RUN: gcomp opt %s -p cse | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: [[A:%.*]] = stablehlo.add %x, %y
  // CHECK-NEXT: [[B:%.*]] = stablehlo.add %y, %x
  // CHECK-NEXT: [[M:%.*]] = stablehlo.multiply [[A]], [[A]]
  // CHECK-NEXT: return [[M]], [[B]]
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  %1 = stablehlo.add %x, %y : tensor<4xf32>
  %2 = stablehlo.add %y, %x : tensor<4xf32>
  %3 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %3, %2 : tensor<4xf32>, tensor<4xf32>
}

// Reductions are equal when their bodies are.
// CHECK-LABEL: @reductions
func.func private @reductions(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[S:%.*]] = stablehlo.reduce(%x init: {{.*}}) applies stablehlo.add
  // CHECK-NEXT: [[P:%.*]] = stablehlo.reduce(%x init: {{.*}}) applies stablehlo.multiply
  // CHECK-NEXT: return [[S]], [[S]], [[P]]
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.reduce(%x init: %c) applies stablehlo.multiply across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What two ops have in their regions may be equal only once it is merged itself.
// CHECK-LABEL: @regions
func.func private @regions(%p: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[R:%.*]] = "stablehlo.if"
  // CHECK-NOT: stablehlo.if
  // CHECK: return [[R]], [[R]]
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.add %x, %x : tensor<4xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %3 = "stablehlo.if"(%p) ({
    %4 = stablehlo.add %x, %x : tensor<4xf32>
    %5 = stablehlo.add %x, %x : tensor<4xf32>
    %6 = stablehlo.multiply %4, %5 : tensor<4xf32>
    stablehlo.return %6 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0, %3 : tensor<4xf32>, tensor<4xf32>
}
