// RUN: gcomp opt %s -p expand-chlo | filecheck %s

// Each row meets each matrix, and keeps the product with that of its group.
// CHECK-LABEL: @main
func.func @main(%x: tensor<5x4xf32>, %y: tensor<3x4x2xf32>, %g: tensor<3xi32>) -> tensor<5x2xf32> {
  // CHECK: [[P:%.*]] = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
  // CHECK-SAME: -> tensor<5x3x2xf32>
  // CHECK: [[I:%.*]] = stablehlo.and
  // CHECK: stablehlo.constant dense<-0.0>
  // CHECK: [[K:%.*]] = stablehlo.select [[I]], [[P]]
  // CHECK: [[N:%.*]] = stablehlo.constant dense<-0.0>
  // CHECK: [[R:%.*]] = stablehlo.reduce([[K]] init: [[N]]) applies stablehlo.add across dimensions = [1]
  // CHECK: [[A:%.*]] = stablehlo.reduce([[I]] init: {{.*}}) applies stablehlo.or across dimensions = [1]
  // CHECK: [[S:%.*]] = stablehlo.select [[A]], [[R]]
  // CHECK: return [[S]]
  %r = "chlo.ragged_dot"(%x, %y, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>
    : (tensor<5x4xf32>, tensor<3x4x2xf32>, tensor<3xi32>) -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}

// Complex numbers: both parts of what is nothing are -0.
// CHECK-LABEL: @complex
func.func private @complex(%x: tensor<5x4xcomplex<f32>>, %y: tensor<3x4x2xcomplex<f32>>, %g: tensor<3xi32>) -> tensor<5x2xcomplex<f32>> {
  // CHECK: stablehlo.constant dense<(-0.0,-0.0)>
  // CHECK: [[N:%.*]] = stablehlo.constant dense<(-0.0,-0.0)>
  // CHECK: stablehlo.reduce({{%.*}} init: [[N]]) applies stablehlo.add across dimensions = [1]
  %r = "chlo.ragged_dot"(%x, %y, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>
    : (tensor<5x4xcomplex<f32>>, tensor<3x4x2xcomplex<f32>>, tensor<3xi32>) -> tensor<5x2xcomplex<f32>>
  return %r : tensor<5x2xcomplex<f32>>
}

// Groups of a batching dimension change nothing.
// CHECK-LABEL: @batched
func.func private @batched(%x: tensor<5x4xf32>, %y: tensor<5x4xf32>, %g: tensor<3xi32>) -> tensor<5xf32> {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1]
  // CHECK-NEXT: return [[R]]
  %r = "chlo.ragged_dot"(%x, %y, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0],
    rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
    lhs_ragged_dimensions = [0]>}> : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<3xi32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// CHECK-LABEL: @scan
func.func private @scan(%x: tensor<4x3xf32>, %c: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>) {
  // CHECK: [[W:%.*]], [[C:%.*]], [[O:%.*]] = stablehlo.while
  // CHECK: stablehlo.dynamic_slice %x
  // CHECK: stablehlo.add
  // CHECK: stablehlo.dynamic_update_slice
  // CHECK: return [[O]], [[C]]
  %r:2 = "chlo.scan"(%x, %c) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>,
      resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
    %s = stablehlo.add %a, %b : tensor<3xf32>
    stablehlo.return %s, %s : tensor<3xf32>, tensor<3xf32>
  }) : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
  return %r#0, %r#1 : tensor<4x3xf32>, tensor<3xf32>
}

// Without steps there is no loop.
// CHECK-LABEL: @empty
func.func private @empty(%x: tensor<0x3xf32>, %c: tensor<3xf32>) -> (tensor<0x3xf32>, tensor<3xf32>) {
  // CHECK-NOT: while
  // CHECK: return {{.*}}, %c
  %r:2 = "chlo.scan"(%x, %c) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>,
      resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
    stablehlo.return %a, %b : tensor<3xf32>, tensor<3xf32>
  }) : (tensor<0x3xf32>, tensor<3xf32>) -> (tensor<0x3xf32>, tensor<3xf32>)
  return %r#0, %r#1 : tensor<0x3xf32>, tensor<3xf32>
}
