// RUN: gcomp opt %s -p sink-transposes --check-each | filecheck %s

// The first view moves below the broadcast last. What is then viewed a second time is no broadcast any more, and the
// view moves below the comparison, which uses it at two removes.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x3x6xf64>) -> tensor<3x3x6xi1> {
  // CHECK: stablehlo.compare
  // CHECK-NEXT: stablehlo.transpose
  // CHECK-NEXT: return
  %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<1x3x6xf64>) -> tensor<1x6x3xf64>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<1x6x3xf64>) -> tensor<1x3x6xf64>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<1x3x6xf64>) -> tensor<3x3x6xf64>
  %3 = stablehlo.compare NE, %2, %2, FLOAT : (tensor<3x3x6xf64>, tensor<3x3x6xf64>) -> tensor<3x3x6xi1>
  return %3 : tensor<3x3x6xi1>
}
