// RUN: gcomp opt %s -p "insert-checks{kinds=nan,index},cse,dce" | filecheck %s

// The table is in the module; the number of the first check that fails, and the iteration, are outputs.
// CHECK: gcomp.checks = [{{.*}}op = "input"{{.*}}op = "stablehlo.log"{{.*}}op = "stablehlo.dynamic_slice"
// CHECK-LABEL: @main
// CHECK-SAME: gcomp.name = "gcomp.check.number"
// CHECK-SAME: gcomp.name = "gcomp.check.iteration"
func.func @main(%x: tensor<4xf32> {gcomp.name = "x"}, %i: tensor<i32> {gcomp.name = "i"})
    -> (tensor<2xf32> {gcomp.name = "y"}) {
  // CHECK: [[NAN:%.*]] = stablehlo.compare NE, %x, %x, FLOAT
  // CHECK: [[HAD:%.*]] = stablehlo.reduce([[NAN]] {{.*}} applies stablehlo.or
  // CHECK: [[L:%.*]] = stablehlo.log %x
  // CHECK: [[ISNAN:%.*]] = stablehlo.compare NE, [[L]], [[L]], FLOAT
  // CHECK: [[MADE:%.*]] = stablehlo.reduce([[ISNAN]]
  // CHECK: [[NOT:%.*]] = stablehlo.not [[HAD]]
  // CHECK: stablehlo.and [[MADE]], [[NOT]]
  // tanh makes no NaN of its own, and needs no check.
  // CHECK: [[T:%.*]] = stablehlo.tanh [[L]]
  // CHECK-NEXT: stablehlo.dynamic_slice [[T]], %i
  // CHECK: stablehlo.compare GT
  // CHECK: stablehlo.compare LT
  // CHECK: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<2xf32>, tensor<i32>, tensor<i32>
  %l = stablehlo.log %x : tensor<4xf32>
  %t = stablehlo.tanh %l : tensor<4xf32>
  %y = stablehlo.dynamic_slice %t, %i, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
