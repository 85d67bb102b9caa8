// RUN: gcomp opt %s -p decompose --check-each | filecheck %s

// A type without a zero has NaN for it, in the reference too.
// CHECK-LABEL: @main
func.func @main(%x: tensor<2xf8E8M0FNU>) -> tensor<2xf8E8M0FNU> {
  // CHECK-NOT: stablehlo.imag
  // CHECK: return
  %0 = stablehlo.imag %x : tensor<2xf8E8M0FNU>
  return %0 : tensor<2xf8E8M0FNU>
}
