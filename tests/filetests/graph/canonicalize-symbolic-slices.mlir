// RUN: gcomp opt %s -p canonicalize | filecheck %s

// Slices of slices are one where something is left: of nothing, the limit would lie before the start.
// CHECK-LABEL: @main
func.func @main(%x: tensor<?xf32, ["n"]>) -> (tensor<?xf32, ["n"]>, tensor<?xf32, ["n + 1"]>) {
  // CHECK: [[A:%.*]] = stablehlo.concatenate
  // CHECK: [[B:%.*]] = stablehlo.slice [[A]]
  // CHECK-NEXT: [[C:%.*]] = stablehlo.slice [[B]]
  // CHECK-NEXT: [[D:%.*]] = stablehlo.slice [[A]]
  // CHECK-NEXT: return [[C]], [[D]]
  %c = stablehlo.constant dense<0.0> : tensor<4xf32>
  %0 = stablehlo.concatenate %x, %c, dim = 0 : (tensor<?xf32, ["n"]>, tensor<4xf32>) -> tensor<?xf32, ["n + 4"]>
  %1 = stablehlo.slice %0 [1:"n + 4"] : (tensor<?xf32, ["n + 4"]>) -> tensor<?xf32, ["n + 3"]>
  %2 = stablehlo.slice %1 [1:"n + 1"] : (tensor<?xf32, ["n + 3"]>) -> tensor<?xf32, ["n"]>
  %3 = stablehlo.slice %1 [1:"n + 2"] : (tensor<?xf32, ["n + 3"]>) -> tensor<?xf32, ["n + 1"]>
  return %2, %3 : tensor<?xf32, ["n"]>, tensor<?xf32, ["n + 1"]>
}
