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
