// RUN: gcomp opt %s -p decompose | filecheck %s

// CHECK-LABEL: @main
func.func @main(%x: tensor<3xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // CHECK-NEXT: [[B:%.*]] = stablehlo.broadcast_in_dim %x, dims = [0]
  // CHECK-NEXT: [[R:%.*]] = stablehlo.add [[B]], %y
  // CHECK-NEXT: return [[R]]
  %r = "chlo.broadcast_add"(%x, %y) <{broadcast_dimensions = array<i64: 0>}>
    : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// CHECK-LABEL: @legacy
func.func private @legacy(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
  // CHECK-NEXT: return [[R]]
  %r = "stablehlo.dot"(%x, %y) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// Where an element is no element of the operand, the one behind its last is taken.
// CHECK-LABEL: @slice
func.func private @slice(%x: tensor<5xf32>, %s: tensor<1xi64>, %l: tensor<1xi64>, %t: tensor<1xi64>) -> tensor<2xf32> {
  // CHECK: [[P:%.*]] = stablehlo.pad %x
  // CHECK: [[I:%.*]] = stablehlo.select
  // CHECK: [[R:%.*]] = "stablehlo.gather"([[P]], [[I]])
  // CHECK: return [[R]]
  %r = "stablehlo.real_dynamic_slice"(%x, %s, %l, %t)
    : (tensor<5xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// A real number has no imaginary part; a power of floats has code everywhere.
// CHECK-LABEL: @left
func.func private @left(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  // CHECK: [[Z:%.*]] = stablehlo.broadcast_in_dim
  // CHECK: [[P:%.*]] = stablehlo.power %x, %x
  // CHECK: return [[Z]], [[P]]
  %i = "stablehlo.imag"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %p = stablehlo.power %x, %x : tensor<3xf32>
  return %i, %p : tensor<3xf32>, tensor<3xf32>
}
