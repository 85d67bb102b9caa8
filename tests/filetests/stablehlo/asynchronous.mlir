// RUN: gcomp opt %s | filecheck %s

// The body holds one op, on the operands in order; the future is of what it returns.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x?xf32, ["4", "n"]>, %i: tensor<i32>) -> tensor<2x?xf32, ["2", "n"]> {
  // CHECK-NEXT: %0 = "stablehlo.async_start"(%x, %i, %i) ({
  // CHECK-NEXT: ^bb0(%a: tensor<4x?xf32, ["4", "n"]>, %b: tensor<i32>, %c: tensor<i32>):
  // CHECK-NEXT: %s = stablehlo.dynamic_slice %a, %b, %c, sizes = [2, "n"] : (tensor<4x?xf32, ["4", "n"]>, tensor<i32>, tensor<i32>) -> tensor<2x?xf32, ["2", "n"]>
  // CHECK-NEXT: stablehlo.return %s : tensor<2x?xf32, ["2", "n"]>
  // CHECK-NEXT: }) : (tensor<4x?xf32, ["4", "n"]>, tensor<i32>, tensor<i32>) -> !stablehlo.future<tensor<2x?xf32, ["2", "n"]>>
  %0 = "stablehlo.async_start"(%x, %i, %i) ({
  ^bb0(%a: tensor<4x?xf32, ["4", "n"]>, %b: tensor<i32>, %c: tensor<i32>):
    %s = stablehlo.dynamic_slice %a, %b, %c, sizes = [2, "n"] : (tensor<4x?xf32, ["4", "n"]>, tensor<i32>, tensor<i32>) -> tensor<2x?xf32, ["2", "n"]>
    stablehlo.return %s : tensor<2x?xf32, ["2", "n"]>
  }) : (tensor<4x?xf32, ["4", "n"]>, tensor<i32>, tensor<i32>) -> !stablehlo.future<tensor<2x?xf32, ["2", "n"]>>
  // CHECK-NEXT: %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2x?xf32, ["2", "n"]>>) -> tensor<2x?xf32, ["2", "n"]>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2x?xf32, ["2", "n"]>>) -> tensor<2x?xf32, ["2", "n"]>
  return %1 : tensor<2x?xf32, ["2", "n"]>
}
