// RUN: gcomp opt %s -p quantized-values-in-f32  | filecheck %s

// In the total order NaN is above the limit: 8 bits make 0 of it.
// CHECK-LABEL: @main
// CHECK: stablehlo.convert {{.*}} -> tensor<4xi8>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %x = stablehlo.round_nearest_even %a : tensor<4xf32>
  %l = stablehlo.constant dense<-128.0> : tensor<4xf32>
  %h = stablehlo.constant dense<127.0> : tensor<4xf32>
  %c = stablehlo.compare GE, %x, %l, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %m = stablehlo.minimum %x, %h : tensor<4xf32>
  %s = stablehlo.select %c, %m, %l : tensor<4xi1>, tensor<4xf32>
  %q = stablehlo.convert %s : (tensor<4xf32>) -> tensor<4xi8>
  %r = stablehlo.convert %q : (tensor<4xi8>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
