// RUN: gcomp opt %s -p "plan-memory{slots=true}" --check-each | filecheck %s

// What lives before the host says what k is shares no slot with what k sizes: its slot's size would not be known.
// CHECK: buffer.slots = ["4*n", "4*n", "4*k + 4*n"]
module attributes {gcomp.ranges = {k = "0..", n = "0.."}} {
// CHECK-LABEL: func.func public @main
func.func public @main(%x: tensor<?xf32, ["n"]>, %count: tensor<1xi64>) -> tensor<?xf32, ["k + n"]> {
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
  %4 = "gcomp.host"(%count) <{function = "extents", config = {role = "a length"}}> :
      (tensor<1xi64>) -> tensor<?x0xi1, ["k", "0"]>
  // CHECK: buffer.donors = [-4 : i64]
  %5 = kernel.launch loop (%a = %2) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["k + n"]> {
    %6 = stablehlo.constant dense<1.0> : tensor<f32>
    %7 = stablehlo.pad %a, %6, low = [0], high = ["k"], interior = [0]
      : (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<?xf32, ["k + n"]>
    stablehlo.return %7 : tensor<?xf32, ["k + n"]>
  }
  return %5 : tensor<?xf32, ["k + n"]>
}
}
