// RUN: gcomp opt %s | filecheck %s

sdy.mesh @mesh = <["a"=2, "b"=4]>

// The body has the pieces along the manual axes; a computation inside of it takes the others.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x8xf32, ["2*n", "8"]>) -> tensor<?x8xf32, ["2*n", "8"]> {
  // CHECK-NEXT: %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {?}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a"} (%y: tensor<?x8xf32, ["n", "8"]>) {
  // CHECK-NEXT:   %1 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%z: tensor<?x2xf32, ["n", "2"]>) {
  // CHECK-NEXT:     %2 = stablehlo.sine %z : tensor<?x2xf32, ["n", "2"]>
  // CHECK-NEXT:     sdy.return %2 : tensor<?x2xf32, ["n", "2"]>
  // CHECK-NEXT:   } : (tensor<?x8xf32, ["n", "8"]>) -> tensor<?x8xf32, ["n", "8"]>
  // CHECK-NEXT:   sdy.return %1 : tensor<?x8xf32, ["n", "8"]>
  // CHECK-NEXT: } : (tensor<?x8xf32, ["2*n", "8"]>) -> tensor<?x8xf32, ["2*n", "8"]>
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {?}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"a"} (%y: tensor<?x8xf32, ["n", "8"]>) {
    %1 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{}, {"b"}]>] manual_axes={"b"} (%z: tensor<?x2xf32, ["n", "2"]>) {
      %2 = stablehlo.sine %z : tensor<?x2xf32, ["n", "2"]>
      sdy.return %2 : tensor<?x2xf32, ["n", "2"]>
    } : (tensor<?x8xf32, ["n", "8"]>) -> tensor<?x8xf32, ["n", "8"]>
    sdy.return %1 : tensor<?x8xf32, ["n", "8"]>
  } : (tensor<?x8xf32, ["2*n", "8"]>) -> tensor<?x8xf32, ["2*n", "8"]>
  return %0 : tensor<?x8xf32, ["2*n", "8"]>
}

// CHECK-LABEL: func.func private @empty
func.func private @empty() {
  // CHECK-NEXT: sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
  // CHECK-NEXT:   sdy.return
  // CHECK-NEXT: } : () -> ()
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    sdy.return
  } : () -> ()
  return
}
