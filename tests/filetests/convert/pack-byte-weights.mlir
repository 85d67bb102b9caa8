// RUN: gcomp opt %s -p 'pack-dot-weights' | filecheck %s

// Four terms of a column lie together; zeros fill up the last word and the last panel.
// CHECK-LABEL: @main
func.func @main(%x: tensor<2x1002xui8>) -> tensor<2x30xi32> {
  // CHECK: stablehlo.transpose {{.*}} dims = [2, 0, 3, 1] : (tensor<251x4x1x32xi8>) -> tensor<1x251x32x4xi8>
  // CHECK: [[P:%.*]] = stablehlo.pad %x, {{%.*}}, low = [0, 0], high = [0, 2]
  // CHECK: [[X:%.*]] = stablehlo.reshape [[P]] : (tensor<2x1004xui8>) -> tensor<2x251x4xui8>
  // CHECK: stablehlo.dot_general [[X]], {{%.*}}, contracting_dims = [1, 2] x [1, 3] : (tensor<2x251x4xui8>, tensor<1x251x32x4xi8>) -> tensor<2x1x32xi32>
  // CHECK: stablehlo.slice {{.*}} [0:2, 0:30]
  %w = gcomp.weight @w : tensor<1002x30xi8>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x1002xui8>, tensor<1002x30xi8>) -> tensor<2x30xi32>
  return %0 : tensor<2x30xi32>
}
