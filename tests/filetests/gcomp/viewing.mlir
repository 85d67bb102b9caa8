// RUN: gcomp opt %s | filecheck %s

// Complex numbers are pairs of real ones in memory, along a last dimension.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x4xcomplex<f32>, ["n", "4"]>) -> (tensor<?x4xcomplex<f32>, ["n", "4"]>, tensor<2xf64>) {
  // CHECK-NEXT: %0 = gcomp.view_as_real %x : (tensor<?x4xcomplex<f32>, ["n", "4"]>) -> tensor<?x4x2xf32, ["n", "4", "2"]>
  %0 = gcomp.view_as_real %x : (tensor<?x4xcomplex<f32>, ["n", "4"]>) -> tensor<?x4x2xf32, ["n", "4", "2"]>
  // CHECK-NEXT: %1 = gcomp.view_as_complex %0 : (tensor<?x4x2xf32, ["n", "4", "2"]>) -> tensor<?x4xcomplex<f32>, ["n", "4"]>
  %1 = gcomp.view_as_complex %0 : (tensor<?x4x2xf32, ["n", "4", "2"]>) -> tensor<?x4xcomplex<f32>, ["n", "4"]>
  %2 = stablehlo.constant dense<(1.0,2.0)> : tensor<complex<f64>>
  // CHECK: gcomp.view_as_real %2 : (tensor<complex<f64>>) -> tensor<2xf64>
  %3 = gcomp.view_as_real %2 : (tensor<complex<f64>>) -> tensor<2xf64>
  return %1, %3 : tensor<?x4xcomplex<f32>, ["n", "4"]>, tensor<2xf64>
}
