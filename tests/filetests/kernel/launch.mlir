// RUN: gcomp opt %s | filecheck %s
// RUN: gcomp opt %s -p dce,cse,infer-shapes | filecheck %s

// A kernel: its kind, a label, what it reads; its body computes what it writes.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %0 = kernel.launch reduction "add_reduce" (%a = %x, %b = %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK-NEXT:   %1 = stablehlo.add %a, %b : tensor<4x8xf32>
  // CHECK-NEXT:   %2 = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK-NEXT:   %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1]
  // CHECK-NEXT:   stablehlo.return %3 : tensor<4xf32>
  // CHECK-NEXT: }
  %0 = kernel.launch reduction "add_reduce" (%a = %x, %b = %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32> {
    %1 = stablehlo.add %a, %b : tensor<4x8xf32>
    %2 = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    stablehlo.return %3 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
