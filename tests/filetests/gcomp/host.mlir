// RUN: gcomp opt %s | filecheck %s

// A host step binds the symbols in its result types; later ops use them.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x?xi64, ["2", "n"]>, tensor<?xi64, ["n"]>) {
  // CHECK-NEXT: %0 = "gcomp.host"(%x) <{function = "nonzero", config = {}}> : (tensor<2x3xf32>) -> tensor<2x?xi64, ["2", "n"]>
  %0 = "gcomp.host"(%x) <{function = "nonzero", config = {}}> : (tensor<2x3xf32>) -> tensor<2x?xi64, ["2", "n"]>
  // CHECK-NEXT: %1 = stablehlo.iota dim = 0 : tensor<?xi64, ["n"]>
  %1 = stablehlo.iota dim = 0 : tensor<?xi64, ["n"]>
  return %0, %1 : tensor<2x?xi64, ["2", "n"]>, tensor<?xi64, ["n"]>
}
