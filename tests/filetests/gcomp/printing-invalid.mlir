// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: print-C2: {size} is no field; there are: shape, dtype, mean, min, max, nan, inf, values
func.func @main(%x: tensor<4xf32>) {
  gcomp.print "{size}" %x : tensor<4xf32>
  return
}
// -----
// CHECK: why: print-C2: {1.mean} is of operand 1, and there are 1
func.func @main(%x: tensor<4xf32>) {
  gcomp.print "{mean} {1.mean}" %x : tensor<4xf32>
  return
}
// -----
// CHECK: why: print-C3: what it continues and gives is not a count, of type tensor<i32>
func.func @main(%x: tensor<4xf32>) {
  %n = gcomp.print "a" %x : tensor<4xf32> -> tensor<i32>
  return
}
// -----
// CHECK: why: print-C1: it does not stand in the condition of a loop
func.func @main(%p: tensor<i1>) -> tensor<i1> {
  %r = stablehlo.while(%a = %p) : tensor<i1>
  cond {
    gcomp.print "a"
    stablehlo.return %a : tensor<i1>
  } do {
    stablehlo.return %a : tensor<i1>
  }
  return %r : tensor<i1>
}
