// RUN: gcomp opt %s -p dce | filecheck %s

// A host step goes when nothing uses its results or the sizes that it binds: the second binds n, the last nothing used.
// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>) -> tensor<?xi64, ["n"]> {
  // CHECK-NOT: "m"
  %0 = "gcomp.host"(%x) <{function = "nonzero", config = {}}> : (tensor<4xf32>) -> tensor<1x?xi64, ["1", "m"]>
  // CHECK: "gcomp.host"(%x) {{.*}} -> tensor<1x?xi64, ["1", "n"]>
  %1 = "gcomp.host"(%x) <{function = "nonzero", config = {}}> : (tensor<4xf32>) -> tensor<1x?xi64, ["1", "n"]>
  // CHECK-NEXT: stablehlo.iota
  %2 = stablehlo.iota dim = 0 : tensor<?xi64, ["n"]>
  %3 = "gcomp.host"(%0) <{function = "nonzero", config = {}}> : (tensor<1x?xi64, ["1", "m"]>) -> tensor<2x?xi64, ["2", "k"]>
  // CHECK-NEXT: return
  return %2 : tensor<?xi64, ["n"]>
}
