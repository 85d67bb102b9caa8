// RUN: gcomp opt %s -p "raise-activations" | filecheck %s

// x taken out of the sum: x * sqrt(2 / pi) * (1 + 0.044715 * x**2).
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: "gcomp.gelu" %x {{.*}}approximate = "tanh"
  %c = stablehlo.constant dense<0.044715> : tensor<4xf32>
  %t = stablehlo.constant dense<0.7978846> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  %1 = stablehlo.multiply %c, %0 : tensor<4xf32>
  %2 = stablehlo.add %one, %1 : tensor<4xf32>
  %3 = stablehlo.multiply %t, %2 : tensor<4xf32>
  %4 = stablehlo.multiply %x, %3 : tensor<4xf32>
  %5 = stablehlo.tanh %4 : tensor<4xf32>
  %6 = stablehlo.add %5, %one : tensor<4xf32>
  %7 = stablehlo.multiply %half, %6 : tensor<4xf32>
  %8 = stablehlo.multiply %x, %7 : tensor<4xf32>
  return %8 : tensor<4xf32>
}

// Another value among the factors of the cube.
// CHECK-LABEL: func.func private @cube
func.func private @cube(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: gcomp.gelu
  // CHECK: return
  %c = stablehlo.constant dense<0.044715> : tensor<4xf32>
  %t = stablehlo.constant dense<0.7978846> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %y : tensor<4xf32>
  %1 = stablehlo.multiply %x, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %c, %1 : tensor<4xf32>
  %3 = stablehlo.add %x, %2 : tensor<4xf32>
  %4 = stablehlo.multiply %t, %3 : tensor<4xf32>
  %5 = stablehlo.tanh %4 : tensor<4xf32>
  %6 = stablehlo.add %one, %5 : tensor<4xf32>
  %7 = stablehlo.multiply %half, %6 : tensor<4xf32>
  %8 = stablehlo.multiply %x, %7 : tensor<4xf32>
  return %8 : tensor<4xf32>
}

// A fourth power, and a number that is not 0.044715.
// CHECK-LABEL: func.func private @powers
func.func private @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NOT: gcomp.gelu
  // CHECK: return
  %c = stablehlo.constant dense<0.044715> : tensor<4xf32>
  %d = stablehlo.constant dense<0.05> : tensor<4xf32>
  %t = stablehlo.constant dense<0.7978846> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<4xf32>
  %2 = stablehlo.multiply %c, %1 : tensor<4xf32>
  %3 = stablehlo.add %x, %2 : tensor<4xf32>
  %4 = stablehlo.multiply %t, %3 : tensor<4xf32>
  %5 = stablehlo.tanh %4 : tensor<4xf32>
  %6 = stablehlo.add %one, %5 : tensor<4xf32>
  %7 = stablehlo.multiply %half, %6 : tensor<4xf32>
  %8 = stablehlo.multiply %x, %7 : tensor<4xf32>
  %9 = stablehlo.multiply %x, %0 : tensor<4xf32>
  %10 = stablehlo.multiply %d, %9 : tensor<4xf32>
  %11 = stablehlo.add %x, %10 : tensor<4xf32>
  %12 = stablehlo.multiply %t, %11 : tensor<4xf32>
  %13 = stablehlo.tanh %12 : tensor<4xf32>
  %14 = stablehlo.add %one, %13 : tensor<4xf32>
  %15 = stablehlo.multiply %half, %14 : tensor<4xf32>
  %16 = stablehlo.multiply %x, %15 : tensor<4xf32>
  return %8, %16 : tensor<4xf32>, tensor<4xf32>
}

// What is taken out of the sum is another value.
// CHECK-LABEL: func.func private @factor
func.func private @factor(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: gcomp.gelu
  // CHECK: return
  %c = stablehlo.constant dense<0.044715> : tensor<4xf32>
  %t = stablehlo.constant dense<0.7978846> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  %1 = stablehlo.multiply %c, %0 : tensor<4xf32>
  %2 = stablehlo.add %one, %1 : tensor<4xf32>
  %3 = stablehlo.multiply %t, %2 : tensor<4xf32>
  %4 = stablehlo.multiply %y, %3 : tensor<4xf32>
  %5 = stablehlo.tanh %4 : tensor<4xf32>
  %6 = stablehlo.add %one, %5 : tensor<4xf32>
  %7 = stablehlo.multiply %half, %6 : tensor<4xf32>
  %8 = stablehlo.multiply %x, %7 : tensor<4xf32>
  return %8 : tensor<4xf32>
}

// The cube written as a power, and the square; the fourth power is none.
// CHECK-LABEL: func.func private @written_powers
func.func private @written_powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[A:%.*]] = stablehlo.composite "gcomp.gelu" %x {{.*}}approximate = "tanh"
  // CHECK: [[B:%.*]] = stablehlo.composite "gcomp.gelu" %x {{.*}}approximate = "tanh"
  // CHECK-NOT: stablehlo.composite
  // CHECK: return [[A]], [[B]]
  %c = stablehlo.constant dense<0.044715> : tensor<4xf32>
  %t = stablehlo.constant dense<0.7978846> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %three = stablehlo.constant dense<3.0> : tensor<4xf32>
  %four = stablehlo.constant dense<4.0> : tensor<4xf32>
  %0 = stablehlo.power %x, %three : tensor<4xf32>
  %1 = stablehlo.multiply %c, %0 : tensor<4xf32>
  %2 = stablehlo.add %x, %1 : tensor<4xf32>
  %3 = stablehlo.multiply %t, %2 : tensor<4xf32>
  %4 = stablehlo.tanh %3 : tensor<4xf32>
  %5 = stablehlo.add %one, %4 : tensor<4xf32>
  %6 = stablehlo.multiply %half, %5 : tensor<4xf32>
  %7 = stablehlo.multiply %x, %6 : tensor<4xf32>
  %s0 = stablehlo.power %x, %two : tensor<4xf32>
  %s1 = stablehlo.multiply %c, %s0 : tensor<4xf32>
  %s2 = stablehlo.add %one, %s1 : tensor<4xf32>
  %s3 = stablehlo.multiply %t, %s2 : tensor<4xf32>
  %s4 = stablehlo.multiply %x, %s3 : tensor<4xf32>
  %s5 = stablehlo.tanh %s4 : tensor<4xf32>
  %s6 = stablehlo.add %one, %s5 : tensor<4xf32>
  %s7 = stablehlo.multiply %half, %s6 : tensor<4xf32>
  %s8 = stablehlo.multiply %x, %s7 : tensor<4xf32>
  %8 = stablehlo.power %x, %four : tensor<4xf32>
  %9 = stablehlo.multiply %c, %8 : tensor<4xf32>
  %10 = stablehlo.add %x, %9 : tensor<4xf32>
  %11 = stablehlo.multiply %t, %10 : tensor<4xf32>
  %12 = stablehlo.tanh %11 : tensor<4xf32>
  %13 = stablehlo.add %one, %12 : tensor<4xf32>
  %14 = stablehlo.multiply %half, %13 : tensor<4xf32>
  %15 = stablehlo.multiply %x, %14 : tensor<4xf32>
  return %7, %s8, %15 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Divided by the root of 2; divided by another number it is none.
// CHECK-LABEL: func.func private @divided
func.func private @divided(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[A:%.*]] = stablehlo.composite "gcomp.gelu" %x {{.*}}approximate = "none"
  // CHECK-NOT: stablehlo.composite
  // CHECK: return [[A]]
  %root = stablehlo.constant dense<1.41421356> : tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %0 = stablehlo.divide %x, %root : tensor<4xf32>
  %1 = chlo.erf %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = stablehlo.add %1, %one : tensor<4xf32>
  %3 = stablehlo.multiply %x, %2 : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %4 = stablehlo.multiply %3, %half : tensor<4xf32>
  %5 = stablehlo.divide %x, %two : tensor<4xf32>
  %6 = chlo.erf %5 : tensor<4xf32> -> tensor<4xf32>
  %7 = stablehlo.add %6, %one : tensor<4xf32>
  %8 = stablehlo.multiply %x, %7 : tensor<4xf32>
  %9 = stablehlo.multiply %8, %half : tensor<4xf32>
  return %4, %9 : tensor<4xf32>, tensor<4xf32>
}
