// RUN: gcomp opt %s -p partition | filecheck %s

// Columns of the first weight, rows of the second: each device adds its part of the sum.
// CHECK-LABEL: @main
// CHECK: sdy.manual_computation
// CHECK-SAME: in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {"m"}]>, <@mesh, [{"m"}, {}]>]
// CHECK-SAME: out_shardings=[<@mesh, [{}, {}]>]
// CHECK: stablehlo.dot_general {{.*}} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: stablehlo.tanh
// CHECK-NEXT: [[PART:%.*]] = stablehlo.dot_general {{.*}} : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
// CHECK-NEXT: stablehlo.all_reduce{{.*}}[[PART]]
// CHECK-NOT: all_gather
sdy.mesh @mesh = <["m"=4]>
func.func @main(%x: tensor<8x16xf32>, %up: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"m"}]>},
    %down: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"m"}, {}]>}) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] :
    (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x32xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] :
    (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
