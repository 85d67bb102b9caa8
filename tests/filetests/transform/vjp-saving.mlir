// RUN: gcomp opt %s -p "vjp{wrt=a,b},canonicalize,cse,dce" | filecheck %s
// RUN: gcomp opt %s -p "vjp{wrt=a,b save=all},canonicalize,cse,dce" | filecheck %s --check-prefix=ALL

// The way back reads tanh, sine and their product: h is saved alone, and they are computed again from it. Of z and its
// exponential, which are of one size, the later one is saved.
// CHECK-LABEL: @main
// CHECK: [[H:%.*]] = stablehlo.dot_general %x, %a
// CHECK: stablehlo.tanh [[H]]
// CHECK: [[S:%.*]] = stablehlo.optimization_barrier [[H]]
// CHECK: stablehlo.tanh [[S]]
// CHECK: stablehlo.sine [[S]]
// CHECK-NOT: optimization_barrier

// ALL-LABEL: @main
// ALL: stablehlo.tanh
// ALL-NOT: stablehlo.tanh
// ALL-NOT: optimization_barrier
func.func @main(%x: tensor<8x16xf32> {gcomp.name = "x"}, %a: tensor<16x32xf32> {gcomp.name = "a"},
                %b: tensor<32x4xf32> {gcomp.name = "b"}) -> tensor<f32> {
  %h = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %t = stablehlo.tanh %h : tensor<8x32xf32>
  %s = stablehlo.sine %h : tensor<8x32xf32>
  %y = stablehlo.multiply %t, %s : tensor<8x32xf32>
  %z = stablehlo.dot_general %y, %b, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
  %e = stablehlo.exponential %z : tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  return %l : tensor<f32>
}
