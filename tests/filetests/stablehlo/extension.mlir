// RUN: gcomp opt %s | filecheck %s

// A composite is a name, attributes, and the function that it stands for.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.composite "my.softplus" %x {decomposition = @softplus} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %0 = stablehlo.composite "my.softplus" %x {decomposition = @softplus} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.composite "my.softplus" %0 {composite_attributes = {beta = 1.000000e+00 : f32}, decomposition = @softplus, version = 2 : i32} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %1 = stablehlo.composite "my.softplus" %0 {composite_attributes = {beta = 1.000000e+00 : f32}, decomposition = @softplus, version = 2 : i32} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func private @softplus
func.func private @softplus(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.exponential %x : tensor<?xf32, ["n"]>
  %0 = stablehlo.exponential %x : tensor<?xf32, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.log_plus_one %0 : tensor<?xf32, ["n"]>
  %1 = stablehlo.log_plus_one %0 : tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func private @custom_call
func.func private @custom_call(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.custom_call @foo(%x) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %0 = stablehlo.custom_call @foo(%x) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.custom_call @bar(%0) {api_version = 4 : i32, backend_config = {mode = 1 : i64}, has_side_effect = true} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  %1 = stablehlo.custom_call @bar(%0) {api_version = 4 : i32, backend_config = {mode = 1 : i64}, has_side_effect = true} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}
