// RUN: gcomp opt %s -p "vjp{wrt=x save=all},cse,dce" | filecheck %s

// The loop saves what the way back needs, iteration by iteration, and a second loop reads it from the last turn on.
// CHECK-LABEL: @main
func.func @main(%x: tensor<f32> {gcomp.name = "x"}) -> (tensor<f32> {gcomp.name = "y"}) {
  // CHECK: stablehlo.while({{.*}} tensor<5xf32>
  // CHECK: stablehlo.dynamic_update_slice
  // CHECK: stablehlo.while
  // CHECK: [[P:%.*]] = stablehlo.subtract
  // CHECK: stablehlo.dynamic_slice {{.*}}, [[P]], sizes = [1] : (tensor<5xf32>, tensor<i64>) -> tensor<1xf32>
  // CHECK: stablehlo.multiply
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %i, %y = stablehlo.while(%i = %zero, %v = %x) : tensor<i64>, tensor<f32>
  cond {
    %five = stablehlo.constant dense<5> : tensor<i64>
    %go = stablehlo.compare LT, %i, %five : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i64>
    %j = stablehlo.add %i, %one : tensor<i64>
    %w = stablehlo.multiply %v, %v : tensor<f32>
    stablehlo.return %j, %w : tensor<i64>, tensor<f32>
  }
  return %y : tensor<f32>
}
