// RUN: gcomp opt %s | filecheck %s

// A splat stays a splat, whatever its size; numbers are printed so that they read back to the same bits.
// CHECK-LABEL: func.func @main
func.func @main() -> tensor<100000000xf32> {
  // CHECK-NEXT: %0 = stablehlo.constant dense<1.0> : tensor<100000000xf32>
  %0 = stablehlo.constant dense<1.0> : tensor<100000000xf32>
  return %0 : tensor<100000000xf32>
}

// CHECK-LABEL: func.func private @constants
func.func private @constants() -> tensor<2x2xi1> {
  // CHECK-NEXT: %0 = stablehlo.constant dense<[0x7FC00000, 0xFF800000, -0.0, 0.1]> : tensor<4xf32>
  %0 = stablehlo.constant dense<[0x7FC00000, 0xFF800000, -0.0, 0.1]> : tensor<4xf32>
  // CHECK-NEXT: %1 = stablehlo.constant dense<[(1.0,-2.0), (0.5,0.0)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.constant dense<[(1.0,-2.0), (0.5,0.0)]> : tensor<2xcomplex<f32>>
  // CHECK-NEXT: %2 = stablehlo.constant dense<[0, 18446744073709551615]> : tensor<2xui64>
  %2 = stablehlo.constant dense<[0, 18446744073709551615]> : tensor<2xui64>
  // CHECK-NEXT: %3 = stablehlo.constant dense<[-8, 0, 7]> : tensor<3xi4>
  %3 = stablehlo.constant dense<[-8, 0, 7]> : tensor<3xi4>
  // CHECK-NEXT: %4 = stablehlo.constant dense<[1.0, 448.0]> : tensor<2xf8E4M3FN>
  %4 = stablehlo.constant dense<[1.0, 448.0]> : tensor<2xf8E4M3FN>
  // CHECK-NEXT: %5 = stablehlo.constant dense<> : tensor<0x3xi64>
  %5 = stablehlo.constant dense<> : tensor<0x3xi64>
  // CHECK-NEXT: %6 = stablehlo.constant dense<{{\[\[}}true, false], [false, true]]> : tensor<2x2xi1>
  %6 = stablehlo.constant dense<[[true, false], [false, true]]> : tensor<2x2xi1>
  return %6 : tensor<2x2xi1>
}

// CHECK-LABEL: func.func private @iota
func.func private @iota() -> tensor<?x4xi32, ["batch", "4"]> {
  // CHECK-NEXT: %0 = stablehlo.iota dim = 0 : tensor<?x4xi32, ["batch", "4"]>
  %0 = stablehlo.iota dim = 0 : tensor<?x4xi32, ["batch", "4"]>
  return %0 : tensor<?x4xi32, ["batch", "4"]>
}
