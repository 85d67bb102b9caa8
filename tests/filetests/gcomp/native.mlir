// RUN: gcomp opt %s | filecheck %s

// A weight is read by its name in the program's weight table; a dimension by its formula.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x4xf32, ["batch", "4"]>) -> tensor<i64> {
  // CHECK-NEXT: %w = gcomp.weight @kernel : tensor<4x4xf32>
  %w = gcomp.weight @kernel : tensor<4x4xf32>
  // CHECK-NEXT: %v = gcomp.weight @"encoder.0/bias" : tensor<4xbf16>
  %v = gcomp.weight @"encoder.0/bias" : tensor<4xbf16>
  // CHECK-NEXT: %d = gcomp.dim "2*batch" : tensor<i64>
  %d = gcomp.dim "2*batch" : tensor<i64>
  return %d : tensor<i64>
}
