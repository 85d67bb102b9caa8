// RUN: gcomp opt %s -p "pad-dims{dims=seq},cse,dce" | filecheck %s

// A loop over the rows takes as many iterations as there are true ones, and its slices end with them.
// CHECK-LABEL: @main
// CHECK: stablehlo.while
// CHECK: cond
// CHECK: stablehlo.compare LT, {{%.*}}, %length_seq_, SIGNED
// CHECK: do
// CHECK: [[AT:%.*]] = stablehlo.minimum
// CHECK: stablehlo.dynamic_slice %x, {{%.*}}, {{%.*}} sizes = [1, 4]
func.func @main(%x: tensor<?x4xf32, ["seq", "4"]> {gcomp.name = "x"}) -> (tensor<1x4xf32> {gcomp.name = "y"}) {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %start = stablehlo.constant dense<0.0> : tensor<1x4xf32>
  %i, %y = stablehlo.while(%k = %zero, %a = %start) : tensor<i64>, tensor<1x4xf32>
  cond {
    %n = gcomp.dim "seq" : tensor<i64>
    %c = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i64>
    %next = stablehlo.add %k, %one : tensor<i64>
    %r = stablehlo.dynamic_slice %x, %k, %zero, sizes = [1, 4]
      : (tensor<?x4xf32, ["seq", "4"]>, tensor<i64>, tensor<i64>) -> tensor<1x4xf32>
    %b = stablehlo.subtract %r, %a : tensor<1x4xf32>
    stablehlo.return %next, %b : tensor<i64>, tensor<1x4xf32>
  }
  func.return %y : tensor<1x4xf32>
}
