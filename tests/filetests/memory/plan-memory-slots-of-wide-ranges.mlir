// RUN: gcomp opt %s -p "plan-memory{slots=true}" --check-each | filecheck %s

// The greatest n needs 400 MB, the least 400 bytes: what n sizes is sized at the call. The rest has its place.
// CHECK: buffer.arena = 512 : i64
// CHECK-SAME: buffer.slots = ["400*n"]
module attributes {gcomp.ranges = {n = "1..1000000"}} {
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<?x100xf32, ["n", "100"]>, %y: tensor<100xf32>)
    -> (tensor<?x100xf32, ["n", "100"]>, tensor<100xf32>) {
  // CHECK: buffer.donors = [-2 : i64]
  %0 = kernel.launch loop (%a = %x) : (tensor<?x100xf32, ["n", "100"]>) -> tensor<?x100xf32, ["n", "100"]> {
    %1 = stablehlo.reverse %a, dims = [0] : tensor<?x100xf32, ["n", "100"]>
    stablehlo.return %1 : tensor<?x100xf32, ["n", "100"]>
  }
  // CHECK: buffer.places = [0 : i64]
  %2 = kernel.launch loop (%a = %y) : (tensor<100xf32>) -> tensor<100xf32> {
    %3 = stablehlo.reverse %a, dims = [0] : tensor<100xf32>
    stablehlo.return %3 : tensor<100xf32>
  }
  return %0, %2 : tensor<?x100xf32, ["n", "100"]>, tensor<100xf32>
}
}
