// RUN: gcomp opt %s -p "pad-dims{dims=seq},cse,dce" | filecheck %s

// What is padded keeps its type; the length is one more input, and the mean divides by it.
// CHECK-LABEL: @main
// CHECK-SAME: %x: tensor<?x4xf32, ["seq", "4"]>
// CHECK-SAME: [[LENGTH:%.*]]: tensor<i64> {gcomp.name = "length(seq)"}
// CHECK: stablehlo.constant dense<-0.0> : tensor<f32>
// CHECK: [[INDEX:%.*]] = stablehlo.iota dim = 0 : tensor<?xi32, ["seq"]>
// CHECK: [[REAL:%.*]] = stablehlo.compare LT, [[INDEX]],
// CHECK: [[MASK:%.*]] = stablehlo.broadcast_in_dim [[REAL]], dims = [0]
// CHECK: [[PADDED:%.*]] = stablehlo.select [[MASK]], %x,
// CHECK: [[SUM:%.*]] = stablehlo.reduce([[PADDED]] init:
// CHECK-NOT: gcomp.dim
// CHECK: [[COUNT:%.*]] = stablehlo.convert [[LENGTH]] : (tensor<i64>) -> tensor<f32>
// CHECK: stablehlo.divide [[SUM]],
module attributes {gcomp.ranges = {seq = "1..512"}} {
func.func @main(%x: tensor<?x4xf32, ["seq", "4"]> {gcomp.name = "x"})
    -> (tensor<4xf32> {gcomp.name = "mean"}, tensor<?x4xf32, ["seq", "4"]> {gcomp.name = "y"}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<?x4xf32, ["seq", "4"]>, tensor<f32>) -> tensor<4xf32>
  %n = gcomp.dim "seq" : tensor<i64>
  %f = stablehlo.convert %n : (tensor<i64>) -> tensor<f32>
  %w = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %mean = stablehlo.divide %sum, %w : tensor<4xf32>
  // What does not mix rows is left as it is.
  // CHECK: stablehlo.tanh %x
  %y = stablehlo.tanh %x : tensor<?x4xf32, ["seq", "4"]>
  func.return %mean, %y : tensor<4xf32>, tensor<?x4xf32, ["seq", "4"]>
}
}
