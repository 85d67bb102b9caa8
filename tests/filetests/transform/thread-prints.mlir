// RUN: gcomp opt %s -p "thread-prints" | filecheck %s

// CHECK-LABEL: @main
// CHECK-SAME: gcomp.name = "gcomp.prints"
func.func @main(%p: tensor<i1>, %x: tensor<4xi4>) -> tensor<4xi4> {
  // CHECK-NEXT: [[ZERO:%.*]] = stablehlo.constant dense<0> : tensor<i32>
  // CHECK-NEXT: [[WIDE:%.*]] = stablehlo.convert %x : (tensor<4xi4>) -> tensor<4xi8>
  // CHECK-NEXT: [[ONE:%.*]] = gcomp.print "i4 {mean}" [[ZERO]], [[WIDE]] : tensor<i32>, tensor<4xi8> -> tensor<i32>
  gcomp.print "{dtype} {mean}" %x : tensor<4xi4>
  // CHECK-NEXT: [[BOTH:%.*]] = "stablehlo.if"(%p) ({
  // CHECK-NEXT: [[TWO:%.*]] = gcomp.print "yes" [[ONE]] : tensor<i32> -> tensor<i32>
  // CHECK-NEXT: stablehlo.return [[TWO]]
  // CHECK: stablehlo.return [[ONE]]
  "stablehlo.if"(%p) ({
    gcomp.print "yes"
    stablehlo.return
  }, {
    stablehlo.return
  }) : (tensor<i1>) -> ()
  // CHECK: return %x, [[BOTH]]
  return %x : tensor<4xi4>
}
