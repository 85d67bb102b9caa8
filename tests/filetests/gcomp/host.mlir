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

// In a branch, the operands say of what sizes the results are.
// CHECK-LABEL: func.func private @branch
func.func private @branch(%p: tensor<i1>, %x: tensor<?x3x3xf32, ["n", "3", "3"]>) -> tensor<?x3x3xf32, ["n", "3", "3"]> {
  // CHECK: "gcomp.host"(%x) <{function = "cholesky", config = {lower = true}}>
  %0 = "stablehlo.if"(%p) ({
    %1 = "gcomp.host"(%x) <{function = "cholesky", config = {lower = true}}>
      : (tensor<?x3x3xf32, ["n", "3", "3"]>) -> tensor<?x3x3xf32, ["n", "3", "3"]>
    stablehlo.return %1 : tensor<?x3x3xf32, ["n", "3", "3"]>
  }, {
    stablehlo.return %x : tensor<?x3x3xf32, ["n", "3", "3"]>
  }) : (tensor<i1>) -> tensor<?x3x3xf32, ["n", "3", "3"]>
  return %0 : tensor<?x3x3xf32, ["n", "3", "3"]>
}
