// RUN: gcomp opt %s --split -p "raise-activations,raise-softmax,raise-norms,raise-rotary" --check-each | filecheck %s

// Of square tensors, what stands at other places has the same type.
// What is centered is transposed: by itself it has a root mean square, and its source no norm.
// CHECK-LABEL: @main
// CHECK-NOT: gcomp.layer_norm
func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<3.0> : tensor<3xf32>
  %e = stablehlo.constant dense<1.0e-5> : tensor<3xf32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
  %m = stablehlo.divide %s, %n : tensor<3xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
  %c = stablehlo.subtract %x, %mb : tensor<3x3xf32>
  %q = stablehlo.multiply %c, %c : tensor<3x3xf32>
  %v = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
  %vm = stablehlo.divide %v, %n : tensor<3xf32>
  %ve = stablehlo.add %vm, %e : tensor<3xf32>
  %sd = stablehlo.sqrt %ve : tensor<3xf32>
  %t = stablehlo.transpose %c, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %sb = stablehlo.broadcast_in_dim %sd, dims = [0] : (tensor<3xf32>) -> tensor<3x3xf32>
  %r = stablehlo.divide %t, %sb : tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}

// -----

// Each element meets another's exponential.
// CHECK-LABEL: @main
// CHECK-NOT: composite
func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %1 = stablehlo.constant dense<1.0> : tensor<3x3xf32>
  %n = stablehlo.negate %x : tensor<3x3xf32>
  %e = stablehlo.exponential %n : tensor<3x3xf32>
  %a = stablehlo.add %1, %e : tensor<3x3xf32>
  %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %r = stablehlo.divide %x, %t : tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}

// -----

// The maximum is added where it was not subtracted.
// CHECK-LABEL: @main
// CHECK-NOT: composite
func.func @main(%x: tensor<3x3x4xf32>) -> tensor<3x3xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %zz = stablehlo.constant dense<0.0> : tensor<3x3xf32>
  %m0 = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [2] : (tensor<3x3x4xf32>, tensor<f32>) -> tensor<3x3xf32>
  %mt = stablehlo.transpose %m0, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %fin = stablehlo.is_finite %mt : (tensor<3x3xf32>) -> tensor<3x3xi1>
  %m = stablehlo.select %fin, %mt, %zz : tensor<3x3xi1>, tensor<3x3xf32>
  %w = stablehlo.broadcast_in_dim %m, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3x4xf32>
  %d = stablehlo.subtract %x, %w : tensor<3x3x4xf32>
  %e = stablehlo.exponential %d : tensor<3x3x4xf32>
  %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : (tensor<3x3x4xf32>, tensor<f32>) -> tensor<3x3xf32>
  %l = stablehlo.log %s : tensor<3x3xf32>
  %r = stablehlo.add %l, %m : tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}

// -----

// Integers between the exponentials and their sum cut off what makes it.
// CHECK-LABEL: @main
// CHECK-NOT: composite
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  %w = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %d = stablehlo.subtract %x, %w : tensor<3x4xf32>
  %e = stablehlo.exponential %d : tensor<3x4xf32>
  %k = stablehlo.convert %e : (tensor<3x4xf32>) -> tensor<3x4xi32>
  %f = stablehlo.convert %k : (tensor<3x4xi32>) -> tensor<3x4xf32>
  %s = stablehlo.reduce(%f init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %r = stablehlo.divide %e, %sb : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// A division by infinity is no mean.
// CHECK-LABEL: @main
// CHECK-NOT: composite
func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<0x7F800000> : tensor<3xf32>
  %e = stablehlo.constant dense<1.0e-5> : tensor<3xf32>
  %q = stablehlo.multiply %x, %x : tensor<3x3xf32>
  %v = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
  %vm = stablehlo.divide %v, %n : tensor<3xf32>
  %ve = stablehlo.add %vm, %e : tensor<3xf32>
  %sd = stablehlo.sqrt %ve : tensor<3xf32>
  %sb = stablehlo.broadcast_in_dim %sd, dims = [0] : (tensor<3xf32>) -> tensor<3x3xf32>
  %r = stablehlo.divide %x, %sb : tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}

// -----

// The turned half is turned once more.
// CHECK-LABEL: @main
// CHECK-NOT: composite
func.func @main(%x: tensor<4x4xf32>, %cs: tensor<4xf32>, %sn: tensor<4xf32>) -> tensor<4x4xf32> {
  %c = stablehlo.broadcast_in_dim %cs, dims = [1] : (tensor<4xf32>) -> tensor<4x4xf32>
  %s = stablehlo.broadcast_in_dim %sn, dims = [1] : (tensor<4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.slice %x [0:4, 0:2] : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %2 = stablehlo.slice %x [0:4, 2:4] : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %n = stablehlo.negate %2 : tensor<4x2xf32>
  %j = stablehlo.concatenate %n, %1, dim = 1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  %a = stablehlo.multiply %x, %c : tensor<4x4xf32>
  %b = stablehlo.multiply %j, %s : tensor<4x4xf32>
  %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = stablehlo.add %a, %t : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Both halves are transposed.
// CHECK-LABEL: @main
// CHECK-NOT: composite
func.func @main(%x: tensor<2x4xf32>, %cs: tensor<2xf32>, %sn: tensor<2xf32>) -> tensor<2x4xf32> {
  %c = stablehlo.broadcast_in_dim %cs, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %s = stablehlo.broadcast_in_dim %sn, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.slice %x [0:2, 0:2] : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %2 = stablehlo.slice %x [0:2, 2:4] : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %a = stablehlo.multiply %1, %c : tensor<2x2xf32>
  %b = stablehlo.multiply %2, %s : tensor<2x2xf32>
  %d = stablehlo.subtract %a, %b : tensor<2x2xf32>
  %dt = stablehlo.transpose %d, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = stablehlo.multiply %2, %c : tensor<2x2xf32>
  %f = stablehlo.multiply %1, %s : tensor<2x2xf32>
  %g = stablehlo.add %e, %f : tensor<2x2xf32>
  %gt = stablehlo.transpose %g, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %r = stablehlo.concatenate %dt, %gt, dim = 1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// Tables in another order are not taken, and nothing is built for one that is.
// CHECK-LABEL: @main
// CHECK-NOT: composite
func.func @main(%x: tensor<4x4xf32>, %c: tensor<4x1x1xf32>, %s: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %1 = stablehlo.slice %x [0:4, 0:2] : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %2 = stablehlo.slice %x [0:4, 2:4] : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %n = stablehlo.negate %2 : tensor<4x2xf32>
  %j = stablehlo.concatenate %n, %1, dim = 1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  %cr = stablehlo.reshape %c : (tensor<4x1x1xf32>) -> tensor<4xf32>
  %cb = stablehlo.broadcast_in_dim %cr, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
  %a = stablehlo.multiply %x, %cb : tensor<4x4xf32>
  %ts = stablehlo.transpose %s, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = stablehlo.multiply %j, %ts : tensor<4x4xf32>
  %r = stablehlo.add %a, %b : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
