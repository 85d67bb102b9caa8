// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xbf16, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.convert %x : (tensor<?xf32, ["n"]>) -> tensor<?xbf16, ["n"]>
  %0 = stablehlo.convert %x : (tensor<?xf32, ["n"]>) -> tensor<?xbf16, ["n"]>
  return %0 : tensor<?xbf16, ["n"]>
}

// Elements of the same width, narrower ones (a new last dimension) and wider ones (the last dimension goes).
// CHECK-LABEL: func.func private @bitcast_convert
func.func private @bitcast_convert(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.bitcast_convert %x : (tensor<?xf32, ["n"]>) -> tensor<?xi32, ["n"]>
  %0 = stablehlo.bitcast_convert %x : (tensor<?xf32, ["n"]>) -> tensor<?xi32, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.bitcast_convert %0 : (tensor<?xi32, ["n"]>) -> tensor<?x4xui8, ["n", "4"]>
  %1 = stablehlo.bitcast_convert %0 : (tensor<?xi32, ["n"]>) -> tensor<?x4xui8, ["n", "4"]>
  // CHECK-NEXT: %2 = stablehlo.bitcast_convert %1 : (tensor<?x4xui8, ["n", "4"]>) -> tensor<?xf32, ["n"]>
  %2 = stablehlo.bitcast_convert %1 : (tensor<?x4xui8, ["n", "4"]>) -> tensor<?xf32, ["n"]>
  return %2 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func private @reduce_precision
func.func private @reduce_precision(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<?xf32, ["n"]>
  %0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
