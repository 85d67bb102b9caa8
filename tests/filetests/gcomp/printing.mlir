// RUN: gcomp opt %s -p "canonicalize,cse,dce" | filecheck %s

// Prints stay, all of them and in order, in loops that nothing else needs too; equal ones stay two.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>, %last: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // CHECK: gcomp.print "x: {shape} mean {mean:.3f}" %x : tensor<4xf32>
  // CHECK-NEXT: gcomp.print "x: {shape} mean {mean:.3f}" %x : tensor<4xf32>
  gcomp.print "x: {shape} mean {mean:.3f}" %x : tensor<4xf32>
  "gcomp.print"(%x) <{format = "x: {shape} mean {mean:.3f}"}> : (tensor<4xf32>) -> ()
  // CHECK: stablehlo.while
  // CHECK: gcomp.print "turn {values}"
  %i, %unused = stablehlo.while(%at = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %more = stablehlo.compare LT, %at, %last, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %at, %one : tensor<i32>
    gcomp.print "turn {values}" %at : tensor<i32>
    stablehlo.return %next, %v : tensor<i32>, tensor<4xf32>
  }
  // CHECK: gcomp.print "end"
  gcomp.print "end"
  // CHECK-NEXT: return %x
  return %x : tensor<4xf32>
}
