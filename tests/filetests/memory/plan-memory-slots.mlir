// RUN: gcomp opt %s -p "plan-memory{slots=true}" --check-each | filecheck %s

// Sizes without a bound have slots: the first and the third result share one, the second has its own.
// CHECK: buffer.arena = 0 : i64
// CHECK-SAME: buffer.slots = ["4*n", "4*n"]
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK: buffer.donors = [-2 : i64]
  %0 = kernel.launch loop (%a = %x) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
    %1 = stablehlo.reverse %a, dims = [0] : tensor<?xf32, ["n"]>
    stablehlo.return %1 : tensor<?xf32, ["n"]>
  }
  // CHECK: buffer.donors = [-3 : i64]
  %2 = kernel.launch loop (%a = %0) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
    %3 = stablehlo.reverse %a, dims = [0] : tensor<?xf32, ["n"]>
    stablehlo.return %3 : tensor<?xf32, ["n"]>
  }
  // CHECK: buffer.donors = [-2 : i64]
  %4 = kernel.launch loop (%a = %2) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
    %5 = stablehlo.reverse %a, dims = [0] : tensor<?xf32, ["n"]>
    stablehlo.return %5 : tensor<?xf32, ["n"]>
  }
  return %4 : tensor<?xf32, ["n"]>
}
