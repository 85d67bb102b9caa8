// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: async_start-C1: the body is not one op and the return of its results
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    stablehlo.return %a : tensor<2xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
// -----
// CHECK: why: async_start-C2: stablehlo.sine is neither a collective op nor a slice
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %b = stablehlo.sine %a : tensor<2xf32>
    stablehlo.return %b : tensor<2xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
// -----
// CHECK: why: async_start-C3: the body's op does not take the body's arguments
func.func @main(%x: tensor<2xf32>) -> tensor<1xf32> {
  %0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %b = stablehlo.slice %x [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    stablehlo.return %b : tensor<1xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<1xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<1xf32>>) -> tensor<1xf32>
  return %1 : tensor<1xf32>
}
// -----
// CHECK: why: async_start-C: result type is !stablehlo.future<tensor<2xf32>>, expected !stablehlo.future<tensor<1xf32>>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %b = stablehlo.slice %a [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    stablehlo.return %b : tensor<1xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
// -----
// CHECK: why: async_done-C: result type is tensor<2xf32>, expected tensor<1xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<2xf32>):
    %b = stablehlo.slice %a [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    stablehlo.return %b : tensor<1xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<1xf32>>
  %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<1xf32>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
