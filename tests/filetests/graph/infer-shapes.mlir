// RUN: gcomp opt %s -p infer-shapes | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<2x3xf32>) -> tensor<?x?xf32> {
  // CHECK: [[R:%.*]] = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK-NEXT: [[S:%.*]] = stablehlo.sine [[R]] : tensor<3x2xf32>
  // CHECK-NEXT: return [[S]] : tensor<3x2xf32>
  %shape = stablehlo.constant dense<[3, 2]> : tensor<2xi32>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %1 = stablehlo.sine %0 : tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
