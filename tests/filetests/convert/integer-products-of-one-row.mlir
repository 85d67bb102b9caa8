// RUN: gcomp opt %s -p integer-products | filecheck %s

// One row: f32, where its sums are exact, which is faster than 8 bits.
// CHECK-LABEL: @main
func.func @main(%x: tensor<1x300xi8>, %w: tensor<300x5xi8>) -> tensor<1x5xi32> {
  // CHECK: [[P:%.*]] = stablehlo.dot_general {{.*}} : (tensor<1x300xf32>, tensor<300x5xf32>) -> tensor<1x5xf32>
  // CHECK-NEXT: stablehlo.convert [[P]] : (tensor<1x5xf32>) -> tensor<1x5xi32>
  %0 = stablehlo.convert %x : (tensor<1x300xi8>) -> tensor<1x300xi32>
  %1 = stablehlo.convert %w : (tensor<300x5xi8>) -> tensor<300x5xi32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<1x300xi32>, tensor<300x5xi32>) -> tensor<1x5xi32>
  return %2 : tensor<1x5xi32>
}

// A vector is one row.
// CHECK-LABEL: @vector
func.func private @vector(%x: tensor<300xi8>, %w: tensor<300x5xi8>) -> tensor<5xi32> {
  // CHECK: stablehlo.dot_general {{.*}} : (tensor<300xf32>, tensor<300x5xf32>) -> tensor<5xf32>
  %0 = stablehlo.convert %x : (tensor<300xi8>) -> tensor<300xi32>
  %1 = stablehlo.convert %w : (tensor<300x5xi8>) -> tensor<300x5xi32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [0] x [0] : (tensor<300xi32>, tensor<300x5xi32>) -> tensor<5xi32>
  return %2 : tensor<5xi32>
}

// Two rows: 8 bits.
// CHECK-LABEL: @rows
func.func private @rows(%x: tensor<2x300xi8>, %w: tensor<300x5xi8>) -> tensor<2x5xi32> {
  // CHECK: stablehlo.dot_general %x, %w, {{.*}} : (tensor<2x300xi8>, tensor<300x5xi8>) -> tensor<2x5xi32>
  %0 = stablehlo.convert %x : (tensor<2x300xi8>) -> tensor<2x300xi32>
  %1 = stablehlo.convert %w : (tensor<300x5xi8>) -> tensor<300x5xi32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x300xi32>, tensor<300x5xi32>) -> tensor<2x5xi32>
  return %2 : tensor<2x5xi32>
}

// What is read as f32, and a bias that is known, stay in f32; not where the sum has another user.
// CHECK-LABEL: @biased
func.func private @biased(%x: tensor<1x300xi8>, %w: tensor<300x5xi8>) -> tensor<1x5xf32> {
  // CHECK: [[P:%.*]] = stablehlo.dot_general {{.*}} -> tensor<1x5xf32>
  // CHECK-NOT: -> tensor<1x5xi32>
  // CHECK: stablehlo.add [[P]]
  %0 = stablehlo.convert %x : (tensor<1x300xi8>) -> tensor<1x300xi32>
  %1 = stablehlo.convert %w : (tensor<300x5xi8>) -> tensor<300x5xi32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<1x300xi32>, tensor<300x5xi32>) -> tensor<1x5xi32>
  %c = stablehlo.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32>
  %3 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<5xi32>) -> tensor<1x5xi32>
  %4 = stablehlo.add %3, %2 : tensor<1x5xi32>
  %5 = stablehlo.convert %4 : (tensor<1x5xi32>) -> tensor<1x5xf32>
  return %5 : tensor<1x5xf32>
}
