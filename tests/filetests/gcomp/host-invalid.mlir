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
// CHECK: why: host-C1: a host step stands in a function's own block, not in a region of an op
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
