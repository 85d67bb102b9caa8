// RUN: gcomp opt %s -p pack-dot-weights | filecheck %s

// Panels of 32 columns, of any number of rows on the left.
// CHECK-LABEL: @main
func.func @main(%x: tensor<?x16xf32, ["n", "16"]>) -> tensor<?x64xf32, ["n", "64"]> {
  // CHECK-NEXT: [[W:%.*]] = gcomp.weight @w
  // CHECK-NEXT: [[R:%.*]] = stablehlo.reshape [[W]] : (tensor<16x64xf32>) -> tensor<16x2x32xf32>
  // CHECK-NEXT: [[P:%.*]] = stablehlo.transpose [[R]], dims = [1, 0, 2]
  // CHECK-NEXT: [[D:%.*]] = stablehlo.dot_general %x, [[P]], contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : {{.*}} -> tensor<?x2x32xf32, ["n", "2", "32"]>
  // CHECK-NEXT: [[Y:%.*]] = stablehlo.reshape [[D]] : {{.*}} -> tensor<?x64xf32, ["n", "64"]>
  // CHECK-NEXT: return [[Y]]
  %0 = gcomp.weight @w : tensor<16x64xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<?x16xf32, ["n", "16"]>, tensor<16x64xf32>) -> tensor<?x64xf32, ["n", "64"]>
  return %1 : tensor<?x64xf32, ["n", "64"]>
}

// Rows are columns of the matrix; 48 columns come in panels of 16; the result may have a wider element type.
// CHECK-LABEL: @columns_first
func.func private @columns_first(%x: tensor<2x3x32xi8>) -> tensor<2x3x48xi32> {
  // CHECK: [[R:%.*]] = stablehlo.reshape {{%.*}} : (tensor<48x32xi8>) -> tensor<3x16x32xi8>
  // CHECK-NEXT: [[P:%.*]] = stablehlo.transpose [[R]], dims = [0, 2, 1]
  // CHECK-NEXT: stablehlo.dot_general %x, [[P]], contracting_dims = [2] x [1] : {{.*}} -> tensor<2x3x3x16xi32>
  %0 = gcomp.weight @columns_first : tensor<48x32xi8>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [2] x [1] : (tensor<2x3x32xi8>, tensor<48x32xi8>) -> tensor<2x3x48xi32>
  return %1 : tensor<2x3x48xi32>
}

// Two dots read the same panels.
// CHECK-LABEL: @two_dots
func.func private @two_dots(%x: tensor<2x16xf32>, %y: tensor<16xf32>) -> (tensor<2x32xf32>, tensor<32xf32>) {
  // CHECK: [[P:%.*]] = stablehlo.transpose
  // CHECK-NEXT: stablehlo.dot_general %x, [[P]], contracting_dims = [1] x [1]
  // CHECK-NOT: stablehlo.transpose
  // CHECK: stablehlo.dot_general %y, [[P]], contracting_dims = [0] x [1]
  %0 = gcomp.weight @two_dots : tensor<16x32xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x32xf32>) -> tensor<2x32xf32>
  %2 = stablehlo.dot_general %y, %0, contracting_dims = [0] x [0] : (tensor<16xf32>, tensor<16x32xf32>) -> tensor<32xf32>
  return %1, %2 : tensor<2x32xf32>, tensor<32xf32>
}

// 40 columns do not come in panels; a value that is no weight would be laid out anew at every call; a small one would be
// folded into a constant in the IR.
// CHECK-LABEL: @no_panels
func.func private @no_panels(%x: tensor<2x16xf32>, %y: tensor<16x32xf32>) -> (tensor<2x40xf32>, tensor<2x32xf32>, tensor<2x0xf32>, tensor<2x16xf32>) {
  // CHECK-NOT: stablehlo.reshape
  %0 = gcomp.weight @no_panels : tensor<16x40xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x40xf32>) -> tensor<2x40xf32>
  %2 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x32xf32>) -> tensor<2x32xf32>
  %3 = gcomp.weight @no_columns : tensor<16x0xf32>
  %4 = stablehlo.dot_general %x, %3, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x0xf32>) -> tensor<2x0xf32>
  %5 = gcomp.weight @small : tensor<16x16xf32>
  %6 = stablehlo.dot_general %x, %5, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
  return %1, %2, %4, %6 : tensor<2x40xf32>, tensor<2x32xf32>, tensor<2x0xf32>, tensor<2x16xf32>
}

// An embedding's table that is the matrix of the output, too, would be stored twice.
// CHECK-LABEL: @other_reader
func.func private @other_reader(%x: tensor<2x16xf32>, %i: tensor<2xi32>) -> (tensor<2x32xf32>, tensor<2x16xf32>) {
  // CHECK-NOT: stablehlo.reshape
  %0 = gcomp.weight @table : tensor<32x16xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [1] : (tensor<2x16xf32>, tensor<32x16xf32>) -> tensor<2x32xf32>
  %2 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}> : (tensor<32x16xf32>, tensor<2xi32>) -> tensor<2x16xf32>
  return %1, %2 : tensor<2x32xf32>, tensor<2x16xf32>
}

// So would one that is summed over either dimension, that stands on the left, too, or that two ops read.
// CHECK-LABEL: @other_products
func.func private @other_products(%x: tensor<2x32xf32>) -> (tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>, tensor<32x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>) {
  // CHECK-NOT: stablehlo.reshape
  %0 = gcomp.weight @both_ways : tensor<32x32xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
  %2 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [1] : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
  %3 = gcomp.weight @on_the_left : tensor<32x32xf32>
  %4 = stablehlo.dot_general %x, %3, contracting_dims = [1] x [0] : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
  %5 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %6 = gcomp.weight @read_twice : tensor<32x32xf32>
  %7 = gcomp.weight @read_twice : tensor<32x32xf32>
  %8 = stablehlo.dot_general %x, %6, contracting_dims = [1] x [0] : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
  %9 = stablehlo.dot_general %x, %7, contracting_dims = [1] x [0] : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
  return %1, %2, %4, %5, %8, %9 : tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>, tensor<32x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>
}

// Batches, sums over both dimensions, and over none, are no products by a matrix; neither are those of other ranks.
// CHECK-LABEL: @no_matrix
func.func private @no_matrix(%x: tensor<32x16xf32>, %y: tensor<2x16x32xf32>) -> (tensor<32xf32>, tensor<2xf32>, tensor<32x16x16x32xf32>, tensor<32x2x32xf32>) {
  // CHECK-NOT: stablehlo.reshape
  %0 = gcomp.weight @batches : tensor<32x16xf32>
  %1 = stablehlo.dot_general %x, %0, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32xf32>
  %2 = gcomp.weight @both : tensor<16x32xf32>
  %3 = stablehlo.dot_general %y, %2, contracting_dims = [1, 2] x [0, 1] : (tensor<2x16x32xf32>, tensor<16x32xf32>) -> tensor<2xf32>
  %4 = gcomp.weight @none : tensor<16x32xf32>
  %5 = stablehlo.dot_general %x, %4, contracting_dims = [] x [] : (tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<32x16x16x32xf32>
  %6 = gcomp.weight @three : tensor<16x2x32xf32>
  %7 = stablehlo.dot_general %x, %6, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x2x32xf32>) -> tensor<32x2x32xf32>
  return %1, %3, %5, %7 : tensor<32xf32>, tensor<2xf32>, tensor<32x16x16x32xf32>, tensor<32x2x32xf32>
}
