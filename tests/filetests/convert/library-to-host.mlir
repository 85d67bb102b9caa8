// RUN: gcomp opt %s -p library-to-host | filecheck %s

// CHECK-LABEL: @main
func.func @main(%a: tensor<2x3x3xf32>, %b: tensor<2x3x4xf32>, %c: tensor<3x3xcomplex<f32>>, %p: tensor<i1>)
    -> (tensor<2x3x4xf32>, tensor<3x3xcomplex<f32>>, tensor<2x3x3xf32>) {
  // CHECK: [[L:%.*]] = "gcomp.host"(%a) <{function = "cholesky", config = {lower = true}}> : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %0 = stablehlo.cholesky %a, lower = true : tensor<2x3x3xf32>
  // CHECK: "gcomp.host"([[L]], %b) <{function = "triangular_solve", config = {left_side = true, lower = true, unit_diagonal = false, transpose_a = "TRANSPOSE"}}>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}>
    : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: "gcomp.host"(%c) {{.*}} : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
  %2 = stablehlo.cholesky %c, lower = true : tensor<3x3xcomplex<f32>>
  // In a branch, it is called when that runs.
  // CHECK: stablehlo.if
  // CHECK: "gcomp.host"(%a) <{function = "cholesky", config = {lower = false}}>
  %3 = "stablehlo.if"(%p) ({
    %4 = stablehlo.cholesky %a, lower = false : tensor<2x3x3xf32>
    stablehlo.return %4 : tensor<2x3x3xf32>
  }, {
    stablehlo.return %a : tensor<2x3x3xf32>
  }) : (tensor<i1>) -> tensor<2x3x3xf32>
  return %1, %2, %3 : tensor<2x3x4xf32>, tensor<3x3xcomplex<f32>>, tensor<2x3x3xf32>
}
