// RUN: gcomp opt %s -p "vjp{of=loss wrt=x save=all},cse,dce" | filecheck %s

// CHECK-LABEL: @main
// CHECK-SAME: gcomp.name = "grad(loss, x)"
func.func @main(%x: tensor<2x3xf32> {gcomp.name = "x"}, %w: tensor<3x4xf32> {gcomp.name = "w"})
    -> (tensor<f32> {gcomp.name = "loss"}) {
  // CHECK: [[Y:%.*]] = stablehlo.dot_general %x, %w
  // CHECK: [[T:%.*]] = stablehlo.tanh [[Y]]
  // The cotangent of a sum is the same for all; tanh's derivative is (1 + t) * (1 - t).
  // CHECK: [[G:%.*]] = stablehlo.broadcast_in_dim {{.*}}, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
  // CHECK: [[P:%.*]] = stablehlo.multiply [[G]], [[T]]
  // CHECK: [[A:%.*]] = stablehlo.add [[G]], [[P]]
  // CHECK: [[S:%.*]] = stablehlo.subtract {{.*}}, [[T]]
  // CHECK: [[D:%.*]] = stablehlo.multiply [[A]], [[S]]
  // CHECK: [[R:%.*]] = stablehlo.dot_general [[D]], %w, contracting_dims = [1] x [1]
  // CHECK: return [[R]] : tensor<2x3xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %t = stablehlo.tanh %y : tensor<2x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
