// RUN: gcomp opt %s -p "jvp{wrt=x},dce" | filecheck %s

// CHECK-LABEL: @main
// CHECK-SAME: gcomp.name = "t(x)"
// CHECK-SAME: gcomp.name = "jvp(r0)"
func.func @main(%p: tensor<i1> {gcomp.name = "p"}, %x: tensor<3xf32> {gcomp.name = "x"}) -> (tensor<3xf32> {gcomp.name = "r0"}) {
  // Branches give tangents beside their values.
  // CHECK: [[R:%.*]], [[T:%.*]] = "stablehlo.if"(%p)
  // CHECK: [[S:%.*]] = stablehlo.sine %x
  // CHECK: [[C:%.*]] = stablehlo.cosine %x
  // CHECK: [[D:%.*]] = stablehlo.multiply %t_x_, [[C]]
  // CHECK: stablehlo.return [[S]], [[D]]
  // CHECK: stablehlo.return %x, %t_x_
  // CHECK: return [[R]], [[T]]
  %r = "stablehlo.if"(%p) ({
    %s = stablehlo.sine %x : tensor<3xf32>
    stablehlo.return %s : tensor<3xf32>
  }, {
    stablehlo.return %x : tensor<3xf32>
  }) : (tensor<i1>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
