// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: host-C2: there is no host function 'os.system'
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "gcomp.host"(%x) <{function = "os.system", config = {}}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// CHECK: why: host-C3: its configuration holds something other than numbers, booleans and strings
func.func @main(%x: tensor<4xf32>) -> tensor<1x?xi64, ["1", "n"]> {
  %0 = "gcomp.host"(%x) <{function = "nonzero", config = {a = f32}}> : (tensor<4xf32>) -> tensor<1x?xi64, ["1", "n"]>
  return %0 : tensor<1x?xi64, ["1", "n"]>
}
// -----
// CHECK: why: host-C1: in a branch or a loop, its operands do not say what n is
func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<1x?xi64, ["1", "n"]> {
  %0 = "stablehlo.if"(%p) ({
    %1 = "gcomp.host"(%x) <{function = "nonzero", config = {}}> : (tensor<4xf32>) -> tensor<1x?xi64, ["1", "n"]>
    stablehlo.return %1 : tensor<1x?xi64, ["1", "n"]>
  }, {
    %2 = stablehlo.iota dim = 1 : tensor<1x?xi64, ["1", "n"]>
    stablehlo.return %2 : tensor<1x?xi64, ["1", "n"]>
  }) : (tensor<i1>) -> tensor<1x?xi64, ["1", "n"]>
  return %0 : tensor<1x?xi64, ["1", "n"]>
}
// -----
// CHECK: why: host-C1: it does not stand in the body of stablehlo.reduce, which may run in any order
func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = "gcomp.host"(%a) <{function = "cholesky", config = {lower = true}}> : (tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
