// RUN: gcomp opt %s -p view-as-real | filecheck %s

// Parts of what the program takes are every other number of it; what it returns are pairs side by side.
// CHECK-LABEL: @main
func.func @main(%x: tensor<3xcomplex<f32>>, %y: tensor<3xf32>) -> (tensor<3xcomplex<f32>>, tensor<3xf32>) {
  // CHECK: [[P:%.*]] = gcomp.view_as_real %x : (tensor<3xcomplex<f32>>) -> tensor<3x2xf32>
  // CHECK-NEXT: [[S:%.*]] = stablehlo.slice [[P]] [0:3, 1:2] : (tensor<3x2xf32>) -> tensor<3x1xf32>
  // CHECK-NEXT: [[I:%.*]] = stablehlo.reshape [[S]] : (tensor<3x1xf32>) -> tensor<3xf32>
  %0 = stablehlo.imag %x : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  // CHECK: [[Q:%.*]] = stablehlo.concatenate {{.*}}, {{.*}}, dim = 1 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  // CHECK-NEXT: [[Z:%.*]] = gcomp.view_as_complex [[Q]] : (tensor<3x2xf32>) -> tensor<3xcomplex<f32>>
  %1 = stablehlo.complex %0, %y : tensor<3xcomplex<f32>>
  // The part of a real number is the number.
  // CHECK: [[R:%.*]] = stablehlo.real %y
  %2 = stablehlo.real %y : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: return [[Z]], [[R]]
  return %1, %2 : tensor<3xcomplex<f32>>, tensor<3xf32>
}
