// RUN: gcomp opt %s | filecheck %s

// Two operands sorted together by the first, in descending total order.
// CHECK-LABEL: func.func @main
func.func @main(%key: tensor<?x?xf32, ["batch", "seq"]>, %value: tensor<?x?xi32, ["batch", "seq"]>) -> (tensor<?x?xf32, ["batch", "seq"]>, tensor<?x?xi32, ["batch", "seq"]>) {
  // CHECK-NEXT: %0, %1 = "stablehlo.sort"(%key, %value) <{dimension = 1 : i64, is_stable = true}> ({
  // CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
  // CHECK-NEXT: %p = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
  // CHECK-NEXT: stablehlo.return %p : tensor<i1>
  // CHECK-NEXT: }) : (tensor<?x?xf32, ["batch", "seq"]>, tensor<?x?xi32, ["batch", "seq"]>) -> (tensor<?x?xf32, ["batch", "seq"]>, tensor<?x?xi32, ["batch", "seq"]>)
  %0, %1 = "stablehlo.sort"(%key, %value) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<?x?xf32, ["batch", "seq"]>, tensor<?x?xi32, ["batch", "seq"]>) -> (tensor<?x?xf32, ["batch", "seq"]>, tensor<?x?xi32, ["batch", "seq"]>)
  return %0, %1 : tensor<?x?xf32, ["batch", "seq"]>, tensor<?x?xi32, ["batch", "seq"]>
}
