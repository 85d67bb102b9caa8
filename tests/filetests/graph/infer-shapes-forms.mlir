// RUN: gcomp opt %s -p infer-shapes | filecheck %s

// A call has what its callee returns, through another one too, and what follows from it is inferred.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2xf32>) -> tensor<?xf32> {
  // CHECK: [[C:%.*]] = func.call @through(%x) : (tensor<2xf32>) -> tensor<2xf32>
  // CHECK-NEXT: [[S:%.*]] = stablehlo.abs [[C]] : tensor<2xf32>
  // CHECK-NEXT: return [[S]] : tensor<2xf32>
  %0 = func.call @through(%x) : (tensor<2xf32>) -> tensor<?xf32>
  %1 = stablehlo.abs %0 : tensor<?xf32>
  return %1 : tensor<?xf32>
}

// CHECK-LABEL: func.func private @through
func.func private @through(%x: tensor<2xf32>) -> tensor<?xf32> {
  // CHECK: func.call @sine(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %0 = func.call @sine(%x) : (tensor<2xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @sine(%x: tensor<2xf32>) -> tensor<?xf32> {
  %shape = stablehlo.constant dense<2> : tensor<1xi32>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<2xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func private @dynamic
func.func private @dynamic(%x: tensor<1x3xf32>, %v: tensor<f32>) -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  // CHECK: [[B:%.*]] = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<4x3xf32>
  // CHECK: [[I:%.*]] = stablehlo.iota dim = 1 : tensor<4x3xf32>
  // CHECK: [[S:%.*]] = stablehlo.slice %x [0:1, 0:3:2] : (tensor<1x3xf32>) -> tensor<1x2xf32>
  // CHECK: [[P:%.*]] = stablehlo.pad %x, %v, low = [1, 0], high = [0, 2], interior = [0, 1] : (tensor<1x3xf32>, tensor<f32>) -> tensor<2x7xf32>
  // CHECK: return [[B]], [[I]], [[S]], [[P]]
  %shape = stablehlo.constant dense<[4, 3]> : tensor<2xi32>
  %zero = stablehlo.constant dense<0> : tensor<2xi32>
  %ends = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
  %steps = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %low = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
  %high = stablehlo.constant dense<[0, 2]> : tensor<2xi32>
  %gaps = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0, 1] : (tensor<1x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %1 = stablehlo.dynamic_iota %shape, dim = 1 : (tensor<2xi32>) -> tensor<?x?xf32>
  %2 = stablehlo.real_dynamic_slice %x, %zero, %ends, %steps : (tensor<1x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %3 = stablehlo.dynamic_pad %x, %v, %low, %high, %gaps : (tensor<1x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0, %1, %2, %3 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

// What the operands contradict is left, and refused when it runs.
// CHECK-LABEL: func.func private @refused
func.func private @refused(%x: tensor<2x3xf32>, %v: tensor<f32>) -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  // CHECK: stablehlo.dynamic_reshape
  // CHECK: stablehlo.dynamic_broadcast_in_dim
  // CHECK: stablehlo.real_dynamic_slice
  // CHECK: stablehlo.dynamic_pad
  // CHECK: stablehlo.real_dynamic_slice
  // CHECK: stablehlo.dynamic_pad
  %shape = stablehlo.constant dense<[4, 3]> : tensor<2xi32>
  %zero = stablehlo.constant dense<0> : tensor<2xi32>
  %far = stablehlo.constant dense<[3, 3]> : tensor<2xi32>
  %ones = stablehlo.constant dense<1> : tensor<2xi32>
  %less = stablehlo.constant dense<[-3, 0]> : tensor<2xi32>
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %1 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0, 1] : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %2 = stablehlo.real_dynamic_slice %x, %zero, %far, %ones : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %3 = stablehlo.dynamic_pad %x, %v, %less, %zero, %zero : (tensor<2x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %before = stablehlo.constant dense<[-1, 0]> : tensor<2xi32>
  %4 = stablehlo.real_dynamic_slice %x, %before, %ones, %ones : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %5 = stablehlo.dynamic_pad %x, %v, %zero, %zero, %before : (tensor<2x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

// Sizes that are declared are those that the operands give, gaps included; regions are inferred too.
// CHECK-LABEL: func.func private @declared
func.func private @declared(%x: tensor<1x3xf32>, %v: tensor<f32>, %p: tensor<i1>) -> (tensor<2x7xf32>, tensor<?xf32>) {
  // CHECK: stablehlo.pad %x, %v, low = [1, 0], high = [0, 2], interior = [0, 1] : (tensor<1x3xf32>, tensor<f32>) -> tensor<2x7xf32>
  // CHECK: stablehlo.reshape %x : (tensor<1x3xf32>) -> tensor<3xf32>
  // CHECK: stablehlo.abs {{.*}} : tensor<3xf32>
  %low = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
  %high = stablehlo.constant dense<[0, 2]> : tensor<2xi32>
  %gaps = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
  %0 = stablehlo.dynamic_pad %x, %v, %low, %high, %gaps : (tensor<1x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x7xf32>
  %shape = stablehlo.constant dense<3> : tensor<1xi32>
  %1 = "stablehlo.if"(%p) ({
    %2 = stablehlo.dynamic_reshape %x, %shape : (tensor<1x3xf32>, tensor<1xi32>) -> tensor<?xf32>
    %3 = stablehlo.abs %2 : tensor<?xf32>
    stablehlo.return %3 : tensor<?xf32>
  }, {
    %4 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    stablehlo.return %4 : tensor<?xf32>
  }) : (tensor<i1>) -> tensor<?xf32>
  return %0, %1 : tensor<2x7xf32>, tensor<?xf32>
}

// What is declared is kept where the operands say less.
// CHECK-LABEL: func.func private @more
func.func private @more(%x: tensor<?xf32>) -> tensor<3xf32> {
  // CHECK: [[A:%.*]] = stablehlo.abs %x : (tensor<?xf32>) -> tensor<3xf32>
  // CHECK: stablehlo.sine [[A]] : tensor<3xf32>
  %0 = stablehlo.abs %x : (tensor<?xf32>) -> tensor<3xf32>
  %1 = stablehlo.sine %0 : tensor<3xf32>
  return %1 : tensor<3xf32>
}

// How many numbers a vector has must be known as well as which they are.
// CHECK-LABEL: @of_unknown_length
func.func private @of_unknown_length(%x: tensor<1x1xf32>, %p: tensor<f32>) -> (tensor<1x1xf32>, tensor<1x1xf32>) {
  // CHECK: stablehlo.real_dynamic_slice
  // CHECK: stablehlo.dynamic_pad
  %0 = stablehlo.constant dense<1> : tensor<i32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<?xi32>
  %2 = stablehlo.constant dense<0> : tensor<2xi32>
  %3 = stablehlo.real_dynamic_slice %x, %2, %1, %1 : (tensor<1x1xf32>, tensor<2xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<1x1xf32>
  %4 = stablehlo.dynamic_pad %x, %p, %2, %2, %1 : (tensor<1x1xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<?xi32>) -> tensor<1x1xf32>
  return %3, %4 : tensor<1x1xf32>, tensor<1x1xf32>
}
