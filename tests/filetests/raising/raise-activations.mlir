// RUN: gcomp opt %s -p "raise-activations" | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: "gcomp.gelu" %x {{.*}}approximate = "tanh"
  %c = stablehlo.constant dense<0.044715> : tensor<4xf32>
  %t = stablehlo.constant dense<0.7978846> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %c, %1 : tensor<4xf32>
  %3 = stablehlo.add %x, %2 : tensor<4xf32>
  %4 = stablehlo.multiply %t, %3 : tensor<4xf32>
  %5 = stablehlo.tanh %4 : tensor<4xf32>
  %6 = stablehlo.add %one, %5 : tensor<4xf32>
  %7 = stablehlo.multiply %half, %6 : tensor<4xf32>
  %gelu = stablehlo.multiply %x, %7 : tensor<4xf32>
  // CHECK: "gcomp.swiglu" %y, %x
  %8 = stablehlo.logistic %y : tensor<4xf32>
  %9 = stablehlo.multiply %y, %8 : tensor<4xf32>
  %gated = stablehlo.multiply %9, %x : tensor<4xf32>
  // 0.6 is not a half.
  // CHECK: stablehlo.multiply
  %more = stablehlo.constant dense<0.6> : tensor<4xf32>
  %10 = stablehlo.multiply %more, %6 : tensor<4xf32>
  %not = stablehlo.multiply %x, %10 : tensor<4xf32>
  return %gelu, %gated, %not : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// By the error function and by its complement, the sign written as a negation.
// CHECK-LABEL: @exact
func.func private @exact(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[A:%.*]] = stablehlo.composite "gcomp.gelu" %x {{.*}}approximate = "none"
  // CHECK: [[B:%.*]] = stablehlo.composite "gcomp.gelu" %x {{.*}}approximate = "erfc"
  // CHECK: return [[A]], [[B]]
  %root = stablehlo.constant dense<0.70710678> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %root : tensor<4xf32>
  %1 = chlo.erf %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = stablehlo.add %1, %one : tensor<4xf32>
  %3 = stablehlo.multiply %x, %2 : tensor<4xf32>
  %4 = stablehlo.multiply %3, %half : tensor<4xf32>
  %5 = stablehlo.negate %x : tensor<4xf32>
  %6 = stablehlo.multiply %5, %root : tensor<4xf32>
  %7 = chlo.erfc %6 : tensor<4xf32> -> tensor<4xf32>
  %8 = stablehlo.multiply %x, %7 : tensor<4xf32>
  %9 = stablehlo.multiply %8, %half : tensor<4xf32>
  return %4, %9 : tensor<4xf32>, tensor<4xf32>
}

// By a logistic function on either side, and by an exponential function. Nothing else than 1 is added to it, and what
// is divided is what it is a function of.
// CHECK-LABEL: @silu
func.func private @silu(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[A:%.*]] = stablehlo.composite "gcomp.silu" %x
  // CHECK: [[B:%.*]] = stablehlo.composite "gcomp.silu" %x
  // CHECK: [[C:%.*]] = stablehlo.composite "gcomp.silu" %x
  // CHECK: [[D:%.*]] = stablehlo.divide %x
  // CHECK: [[E:%.*]] = stablehlo.divide %y
  // CHECK: return [[A]], [[B]], [[C]], [[D]], [[E]]
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %0 = stablehlo.logistic %x : tensor<4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %0, %x : tensor<4xf32>
  %3 = stablehlo.negate %x : tensor<4xf32>
  %4 = stablehlo.exponential %3 : tensor<4xf32>
  %5 = stablehlo.add %one, %4 : tensor<4xf32>
  %6 = stablehlo.divide %x, %5 : tensor<4xf32>
  %7 = stablehlo.add %4, %two : tensor<4xf32>
  %8 = stablehlo.divide %x, %7 : tensor<4xf32>
  %9 = stablehlo.divide %y, %5 : tensor<4xf32>
  return %1, %2, %6, %8, %9 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @swiglu
func.func private @swiglu(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[A:%.*]] = stablehlo.composite "gcomp.swiglu" %x, %y
  // CHECK: [[B:%.*]] = stablehlo.composite "gcomp.swiglu" %y, %x
  // CHECK: return [[A]], [[B]]
  %0 = stablehlo.logistic %x : tensor<4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %1, %y : tensor<4xf32>
  %3 = stablehlo.logistic %y : tensor<4xf32>
  %4 = stablehlo.multiply %y, %3 : tensor<4xf32>
  %5 = stablehlo.multiply %x, %4 : tensor<4xf32>
  return %2, %5 : tensor<4xf32>, tensor<4xf32>
}
