// RUN: gcomp opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: @transposes
func.func @transposes(%x: tensor<2x3x5xf32>) -> tensor<5x2x3xf32> {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.transpose %x, dims = [2, 0, 1]
  // CHECK-NEXT: return [[R]]
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
  %1 = stablehlo.transpose %0, dims = [2, 1, 0] : (tensor<3x2x5xf32>) -> tensor<5x2x3xf32>
  return %1 : tensor<5x2x3xf32>
}

// CHECK-LABEL: @inverse_transposes
func.func private @inverse_transposes(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  // CHECK-NEXT: return %x
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<5x2x3xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// x - 0 is x for every float; x + 0 is not, because -0 + 0 is +0.
// CHECK-LABEL: @float_zero
func.func private @float_zero(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[S:%.*]] = stablehlo.add %x
  // CHECK-NEXT: return %x, [[S]], %x
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %minus = stablehlo.constant dense<-0.0> : tensor<4xf32>
  %0 = stablehlo.subtract %x, %zero : tensor<4xf32>
  %1 = stablehlo.add %x, %zero : tensor<4xf32>
  %2 = stablehlo.add %minus, %x : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// The same of complex numbers, part by part.
// CHECK-LABEL: @complex_zero
func.func private @complex_zero(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // CHECK: return %x :
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<4xcomplex<f32>>
  %0 = stablehlo.subtract %x, %zero : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// 0 * x is not 0 when x is infinite or NaN; for integers it is.
// CHECK-LABEL: @times_zero
func.func private @times_zero(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  // CHECK: [[F:%.*]] = stablehlo.multiply %x
  // CHECK: [[I:%.*]] = stablehlo.{{constant|broadcast_in_dim}}{{.*}}tensor<4xi32>
  // CHECK-NEXT: return [[F]], [[I]]
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %izero = stablehlo.constant dense<0> : tensor<4xi32>
  %0 = stablehlo.multiply %x, %zero : tensor<4xf32>
  %1 = stablehlo.multiply %i, %izero : tensor<4xi32>
  return %0, %1 : tensor<4xf32>, tensor<4xi32>
}

// CHECK-LABEL: @slices
func.func private @slices(%x: tensor<20xf32>) -> (tensor<3xf32>, tensor<20xf32>) {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.slice %x [4:15:5]
  // CHECK-NEXT: return [[R]], %x
  %0 = stablehlo.slice %x [4:20:5] : (tensor<20xf32>) -> tensor<4xf32>
  %1 = stablehlo.slice %0 [0:3] : (tensor<4xf32>) -> tensor<3xf32>
  %2 = stablehlo.slice %x [0:20] : (tensor<20xf32>) -> tensor<20xf32>
  return %1, %2 : tensor<3xf32>, tensor<20xf32>
}

// CHECK-LABEL: @symbolic
func.func private @symbolic(%x: tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]> {
  // CHECK-NEXT: return %x
  %0 = stablehlo.reshape %x : (tensor<?x4xf32, ["batch", "4"]>) -> tensor<?xf32, ["4*batch"]>
  %1 = stablehlo.reshape %0 : (tensor<?xf32, ["4*batch"]>) -> tensor<?x4xf32, ["batch", "4"]>
  %2 = stablehlo.slice %1 [0:"batch", 0:4] : (tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]>
  return %2 : tensor<?x4xf32, ["batch", "4"]>
}

// A zero point is converted once, and no layout of what it is added to stands in the way.
// CHECK-LABEL: @convert_of_broadcast
func.func private @convert_of_broadcast(%z: tensor<ui8>, %x: tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]> {
  // CHECK-NEXT: [[C:%.*]] = stablehlo.convert %z : (tensor<ui8>) -> tensor<f32>
  // CHECK-NEXT: [[B:%.*]] = stablehlo.broadcast_in_dim [[C]], dims = []
  // CHECK-NEXT: stablehlo.add %x, [[B]]
  %0 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<ui8>) -> tensor<?x4xui8, ["batch", "4"]>
  %1 = stablehlo.convert %0 : (tensor<?x4xui8, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]>
  %2 = stablehlo.add %x, %1 : tensor<?x4xf32, ["batch", "4"]>
  return %2 : tensor<?x4xf32, ["batch", "4"]>
}

// Zeros of both signs are not one number: `x - -0.0` is not `x` where that is `-0.0`.
// CHECK-LABEL: @zeros_of_both_signs
func.func private @zeros_of_both_signs(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK: [[D:%.*]] = stablehlo.subtract %x
  %zeros = stablehlo.constant dense<[0.0, -0.0]> : tensor<2xf32>
  %0 = stablehlo.subtract %x, %zeros : tensor<2xf32>
  %same = stablehlo.constant dense<[0.0, 0.0]> : tensor<2xf32>
  %1 = stablehlo.subtract %x, %same : tensor<2xf32>
  // CHECK-NEXT: return [[D]], %x
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @dot_of_transposes
func.func private @dot_of_transposes(%x: tensor<2x5x3x4xf32>, %w: tensor<7x4xf32>, %v: tensor<6x7xf32>) -> (tensor<2x5x3x7xf32>, tensor<7x7xf32>) {
  // A weight stored as [out, in] is read as it is.
  // CHECK: [[Y:%.*]] = stablehlo.dot_general %x, %w, contracting_dims = [3] x [1]
  %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<7x4xf32>) -> tensor<4x7xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [3] x [0] : (tensor<2x5x3x4xf32>, tensor<4x7xf32>) -> tensor<2x5x3x7xf32>
  // CHECK: [[Z:%.*]] = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0]
  %2 = stablehlo.transpose %v, dims = [1, 0] : (tensor<6x7xf32>) -> tensor<7x6xf32>
  %3 = stablehlo.dot_general %2, %v, contracting_dims = [1] x [0] : (tensor<7x6xf32>, tensor<6x7xf32>) -> tensor<7x7xf32>
  // CHECK: return [[Y]], [[Z]]
  return %1, %3 : tensor<2x5x3x7xf32>, tensor<7x7xf32>
}

// The order of free dimensions is the result's order: this transpose stays.
// CHECK-LABEL: @free_dimensions_keep_their_order
func.func private @free_dimensions_keep_their_order(%x: tensor<2x5x4xf32>, %w: tensor<4x7xf32>) -> tensor<5x2x7xf32> {
  // CHECK: stablehlo.transpose %x, dims = [1, 0, 2]
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x5x4xf32>) -> tensor<5x2x4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0] : (tensor<5x2x4xf32>, tensor<4x7xf32>) -> tensor<5x2x7xf32>
  return %1 : tensor<5x2x7xf32>
}
