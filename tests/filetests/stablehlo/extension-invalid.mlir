// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: composite-C1: 'softplus' is not a name with a namespace
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.composite "softplus" %x {decomposition = @main} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: composite-C2: there is no function @softplus
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.composite "my.softplus" %x {decomposition = @softplus} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: composite-C3: @softplus has type (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]>
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %0 = stablehlo.composite "my.softplus" %x {decomposition = @softplus} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
func.func private @softplus(%x: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["m"]> {
  return %x : tensor<?xf32, ["m"]>
}
// -----
// CHECK: why: custom_call-I4: backend_config is not what api_version 1 takes
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @foo(%x) {backend_config = {mode = 1 : i64}} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
