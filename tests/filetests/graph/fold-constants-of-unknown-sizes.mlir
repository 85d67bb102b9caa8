// RUN: gcomp opt %s -p fold-constants | filecheck %s

// What a function computes of a constant stays while sizes that it uses are not known, even where no result has them.
module attributes {gcomp.ranges = {n = "2..6"}} {
  // CHECK-LABEL: @main
  func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<f32> {
    // CHECK: stablehlo.composite "my.op"
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.composite "my.op" %0 {decomposition = @sum} : (tensor<f32>) -> tensor<f32>
    func.return %1 : tensor<f32>
  }
  func.func private @sum(%0: tensor<f32>) -> tensor<f32> {
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<?xf32, ["n"]>
    %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [0] :
      (tensor<?xf32, ["n"]>, tensor<f32>) -> tensor<f32>
    func.return %2 : tensor<f32>
  }
}
