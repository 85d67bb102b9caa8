// RUN: gcomp opt %s -p 'shard{mesh="data=2"}' | filecheck %s

// Rows are cut, and nothing has to be sent.
// CHECK: sdy.mesh @mesh = <["data"=2]>
// CHECK-LABEL: @main
// CHECK-SAME: %x: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}
// CHECK-SAME: %w: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}
// CHECK-SAME: -> (tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
func.func @main(%x: tensor<64x16xf32>, %w: tensor<16x16xf32>) -> tensor<64x16xf32> {
  // CHECK-NOT: sdy.sharding_constraint
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
  %1 = stablehlo.tanh %0 : tensor<64x16xf32>
  return %1 : tensor<64x16xf32>
}
