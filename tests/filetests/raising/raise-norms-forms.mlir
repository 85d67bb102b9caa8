// RUN: gcomp opt %s -p "raise-norms" | filecheck %s

// The variance as a difference of means, kept from below 0.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK: stablehlo.composite "gcomp.layer_norm" %x
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<2xf32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.divide %0, %count : tensor<2xf32>
  %2 = stablehlo.multiply %x, %x : tensor<2x8xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = stablehlo.divide %3, %count : tensor<2xf32>
  %5 = stablehlo.multiply %1, %1 : tensor<2xf32>
  %6 = stablehlo.subtract %4, %5 : tensor<2xf32>
  %7 = stablehlo.maximum %zeros, %6 : tensor<2xf32>
  %8 = stablehlo.add %7, %epsilon : tensor<2xf32>
  %9 = stablehlo.rsqrt %8 : tensor<2xf32>
  %10 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %11 = stablehlo.subtract %x, %10 : tensor<2x8xf32>
  %12 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %13 = stablehlo.multiply %11, %12 : tensor<2x8xf32>
  return %13 : tensor<2x8xf32>
}

// The squares are another tensor's, or no squares.
// CHECK-LABEL: func.func private @others
func.func private @others(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  // CHECK-NOT: gcomp.rms_norm
  // CHECK: return
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %0 = stablehlo.multiply %y, %y : tensor<2x8xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = stablehlo.divide %1, %count : tensor<2xf32>
  %3 = stablehlo.add %2, %epsilon : tensor<2xf32>
  %4 = stablehlo.rsqrt %3 : tensor<2xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %6 = stablehlo.multiply %x, %5 : tensor<2x8xf32>
  %7 = stablehlo.multiply %x, %y : tensor<2x8xf32>
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %9 = stablehlo.divide %8, %count : tensor<2xf32>
  %10 = stablehlo.add %9, %epsilon : tensor<2xf32>
  %11 = stablehlo.rsqrt %10 : tensor<2xf32>
  %12 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %13 = stablehlo.multiply %x, %12 : tensor<2x8xf32>
  return %6, %13 : tensor<2x8xf32>, tensor<2x8xf32>
}

// Divided by what is no variance at all.
// CHECK-LABEL: func.func private @given
func.func private @given(%x: tensor<2x8xf32>, %v: tensor<2xf32>) -> tensor<2x8xf32> {
  // CHECK-NOT: gcomp.layer_norm
  // CHECK: return
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.divide %0, %count : tensor<2xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<2x8xf32>
  %4 = stablehlo.add %v, %epsilon : tensor<2xf32>
  %5 = stablehlo.rsqrt %4 : tensor<2xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %7 = stablehlo.multiply %3, %6 : tensor<2x8xf32>
  return %7 : tensor<2x8xf32>
}

// The scale comes before the root.
// CHECK-LABEL: func.func private @scaled_first
func.func private @scaled_first(%x: tensor<2x8xf32>, %s: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[R:%.*]] = stablehlo.composite "gcomp.rms_norm" %x, %s
  // CHECK: return [[R]]
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %0 = stablehlo.multiply %x, %x : tensor<2x8xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = stablehlo.divide %1, %count : tensor<2xf32>
  %3 = stablehlo.add %2, %epsilon : tensor<2xf32>
  %4 = stablehlo.rsqrt %3 : tensor<2xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %6 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %7 = stablehlo.multiply %6, %x : tensor<2x8xf32>
  %8 = stablehlo.multiply %7, %5 : tensor<2x8xf32>
  return %8 : tensor<2x8xf32>
}

// A batch norm as a product: of the root and the scale first, as frameworks fold them.
// CHECK-LABEL: func.func private @batch
func.func private @batch(%x: tensor<2x8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[R:%.*]] = "stablehlo.batch_norm_inference"(%x, %s, %b, %m, %v)
  // CHECK: return [[R]]
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<8xf32>
  %0 = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %1 = stablehlo.subtract %x, %0 : tensor<2x8xf32>
  %2 = stablehlo.add %v, %epsilon : tensor<8xf32>
  %3 = stablehlo.rsqrt %2 : tensor<8xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %5 = stablehlo.multiply %1, %4 : tensor<2x8xf32>
  %6 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %7 = stablehlo.multiply %5, %6 : tensor<2x8xf32>
  %8 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %9 = stablehlo.add %7, %8 : tensor<2x8xf32>
  return %9 : tensor<2x8xf32>
}

// The square is a power; a cube is none. The scale comes first, and so does the bias.
// CHECK-LABEL: func.func private @powers
func.func private @powers(%x: tensor<2x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  // CHECK: [[N:%[0-9]+]], {{.*}} = stablehlo.composite "gcomp.layer_norm" %x, %s, %b
  // CHECK-NOT: stablehlo.composite
  // CHECK: return [[N]]
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %two = stablehlo.constant dense<2.0> : tensor<2x8xf32>
  %three = stablehlo.constant dense<3.0> : tensor<2x8xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.divide %0, %count : tensor<2xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<2x8xf32>
  %4 = stablehlo.power %3, %two : tensor<2x8xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %6 = stablehlo.divide %5, %count : tensor<2xf32>
  %7 = stablehlo.add %6, %epsilon : tensor<2xf32>
  %8 = stablehlo.rsqrt %7 : tensor<2xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %10 = stablehlo.multiply %3, %9 : tensor<2x8xf32>
  %11 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %12 = stablehlo.multiply %11, %10 : tensor<2x8xf32>
  %13 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %14 = stablehlo.add %13, %12 : tensor<2x8xf32>
  %15 = stablehlo.power %3, %three : tensor<2x8xf32>
  %16 = stablehlo.reduce(%15 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %17 = stablehlo.divide %16, %count : tensor<2xf32>
  %18 = stablehlo.add %17, %epsilon : tensor<2xf32>
  %19 = stablehlo.rsqrt %18 : tensor<2xf32>
  %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %21 = stablehlo.multiply %3, %20 : tensor<2x8xf32>
  return %14, %21 : tensor<2x8xf32>, tensor<2x8xf32>
}

// Differences that are no variance: less a square that is none of a mean, and of a mean that is none of squares.
// CHECK-LABEL: func.func private @no_variances
func.func private @no_variances(%x: tensor<2x8xf32>, %v: tensor<2xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  // CHECK-NOT: stablehlo.composite
  // CHECK: return
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.divide %0, %count : tensor<2xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<2x8xf32>
  %4 = stablehlo.multiply %x, %x : tensor<2x8xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %6 = stablehlo.divide %5, %count : tensor<2xf32>
  %7 = stablehlo.multiply %v, %v : tensor<2xf32>
  %8 = stablehlo.subtract %6, %7 : tensor<2xf32>
  %9 = stablehlo.add %8, %epsilon : tensor<2xf32>
  %10 = stablehlo.rsqrt %9 : tensor<2xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %12 = stablehlo.multiply %3, %11 : tensor<2x8xf32>
  %13 = stablehlo.multiply %1, %1 : tensor<2xf32>
  %14 = stablehlo.subtract %1, %13 : tensor<2xf32>
  %15 = stablehlo.add %14, %epsilon : tensor<2xf32>
  %16 = stablehlo.rsqrt %15 : tensor<2xf32>
  %17 = stablehlo.broadcast_in_dim %16, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %18 = stablehlo.multiply %3, %17 : tensor<2x8xf32>
  return %12, %18 : tensor<2x8xf32>, tensor<2x8xf32>
}

// Two scales, multiplied with each other first: no norm takes two.
// CHECK-LABEL: func.func private @two_scales
func.func private @two_scales(%x: tensor<2x8xf32>, %s: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  // CHECK-NOT: stablehlo.composite
  // CHECK: return
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %0 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %1 = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<2x8xf32>
  %3 = stablehlo.multiply %x, %x : tensor<2x8xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %5 = stablehlo.divide %4, %count : tensor<2xf32>
  %6 = stablehlo.add %5, %epsilon : tensor<2xf32>
  %7 = stablehlo.rsqrt %6 : tensor<2xf32>
  %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %9 = stablehlo.multiply %2, %8 : tensor<2x8xf32>
  %10 = stablehlo.multiply %x, %9 : tensor<2x8xf32>
  %11 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %12 = stablehlo.divide %11, %count : tensor<2xf32>
  %13 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %14 = stablehlo.subtract %x, %13 : tensor<2x8xf32>
  %15 = stablehlo.multiply %14, %14 : tensor<2x8xf32>
  %16 = stablehlo.reduce(%15 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %17 = stablehlo.divide %16, %count : tensor<2xf32>
  %18 = stablehlo.add %17, %epsilon : tensor<2xf32>
  %19 = stablehlo.rsqrt %18 : tensor<2xf32>
  %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %21 = stablehlo.multiply %2, %20 : tensor<2x8xf32>
  %22 = stablehlo.multiply %14, %21 : tensor<2x8xf32>
  return %10, %22 : tensor<2x8xf32>, tensor<2x8xf32>
}

// Of two differences the first is one from a number, which is no mean of a dimension: the other is normalized.
// CHECK-LABEL: func.func private @two_differences
func.func private @two_differences(%x: tensor<1x8xf32>, %y: tensor<1x8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<1x8xf32> {
  // CHECK: [[S:%.*]] = stablehlo.reshape
  // CHECK: [[R:%.*]] = "stablehlo.batch_norm_inference"(%y, [[S]], %b, %m, %v)
  // CHECK: return [[R]]
  %number = stablehlo.constant dense<3.0> : tensor<f32>
  %three = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<1x8xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<8xf32>
  %0 = stablehlo.subtract %x, %three : tensor<1x8xf32>
  %1 = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
  %2 = stablehlo.subtract %y, %1 : tensor<1x8xf32>
  %3 = stablehlo.add %v, %epsilon : tensor<8xf32>
  %4 = stablehlo.rsqrt %3 : tensor<8xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
  %6 = stablehlo.multiply %0, %2 : tensor<1x8xf32>
  %7 = stablehlo.multiply %6, %5 : tensor<1x8xf32>
  %8 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
  %9 = stablehlo.add %7, %8 : tensor<1x8xf32>
  return %9 : tensor<1x8xf32>
}

// A batch norm as a quotient.
// CHECK-LABEL: func.func private @divided
func.func private @divided(%x: tensor<2x8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[R:%.*]] = "stablehlo.batch_norm_inference"(%x, %s, %b, %m, %v)
  // CHECK: return [[R]]
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<8xf32>
  %0 = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %1 = stablehlo.subtract %x, %0 : tensor<2x8xf32>
  %2 = stablehlo.add %v, %epsilon : tensor<8xf32>
  %3 = stablehlo.sqrt %2 : tensor<8xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %5 = stablehlo.divide %1, %4 : tensor<2x8xf32>
  %6 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %7 = stablehlo.multiply %5, %6 : tensor<2x8xf32>
  %8 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %9 = stablehlo.add %7, %8 : tensor<2x8xf32>
  return %9 : tensor<2x8xf32>
}

// Times one over the root; what follows a bias is no scale of the norm.
// CHECK-LABEL: func.func private @reciprocal
func.func private @reciprocal(%x: tensor<2x8xf32>, %s: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: [[N:%[0-9]+]], {{.*}} = stablehlo.composite "gcomp.layer_norm" %x, {{%.*}}, %b
  // CHECK: [[R:%[0-9]+]] = stablehlo.multiply [[N]]
  // CHECK: return [[R]]
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %one = stablehlo.constant dense<1.0> : tensor<2xf32>
  %epsilon = stablehlo.constant dense<1.0e-05> : tensor<2xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.divide %0, %count : tensor<2xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<2x8xf32>
  %4 = stablehlo.multiply %3, %3 : tensor<2x8xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %6 = stablehlo.divide %5, %count : tensor<2xf32>
  %7 = stablehlo.add %6, %epsilon : tensor<2xf32>
  %8 = stablehlo.sqrt %7 : tensor<2xf32>
  %9 = stablehlo.divide %one, %8 : tensor<2xf32>
  %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %11 = stablehlo.multiply %3, %10 : tensor<2x8xf32>
  %12 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %13 = stablehlo.add %11, %12 : tensor<2x8xf32>
  %14 = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>
  %15 = stablehlo.multiply %13, %14 : tensor<2x8xf32>
  return %15 : tensor<2x8xf32>
}
