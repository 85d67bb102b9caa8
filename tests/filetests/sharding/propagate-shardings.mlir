// RUN: gcomp opt %s -p propagate-shardings | filecheck %s

sdy.mesh @mesh = <["data"=2, "model"=4]>

// The columns of the first weight are the rows of the second, and the batch stays cut.
// CHECK-LABEL: @main
// CHECK-SAME: %down: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}
// CHECK-SAME: -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %up: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                %down: tensor<64x16xf32>) -> tensor<8x16xf32> {
  // CHECK: dot_general {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>}
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] :
    (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
  %1 = stablehlo.tanh %0 : tensor<8x64xf32>
  // CHECK: dot_general {{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] :
    (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
