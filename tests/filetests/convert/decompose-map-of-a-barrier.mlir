// RUN: gcomp opt %s -p decompose --check-each | filecheck %s

// A barrier in a map's body orders whole tensors as it ordered scalars.

// CHECK-LABEL: @main
// CHECK-NEXT: stablehlo.optimization_barrier %{{.*}} : tensor<3xf32>
// CHECK-NOT: stablehlo.map
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>):
    %b = "stablehlo.optimization_barrier"(%a) : (tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%b) : (tensor<f32>) -> ()
  }) : (tensor<3xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}
