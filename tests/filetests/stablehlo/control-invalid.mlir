// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: if-I1: the predicate has type tensor<2xi1>, expected tensor<i1>
func.func @main(%p: tensor<2xi1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<2xf32>
  }, {
    stablehlo.return %x : tensor<2xf32>
  }) : (tensor<2xi1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: case-C3: a region returns (tensor<?xf32, ["m"]>), expected (tensor<?xf32, ["n"]>)
// The branches of a conditional have the same sizes, and `n` is not `m`.
func.func @main(%i: tensor<i32>, %x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]> {
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<?xf32, ["n"]>
  }, {
    stablehlo.return %y : tensor<?xf32, ["m"]>
  }) : (tensor<i32>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}
// -----
// CHECK: why: while-C1: a region returns (tensor<2xf32>), expected (tensor<i1>)
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.while(%y = %x) : tensor<2xf32>
  cond {
    stablehlo.return %y : tensor<2xf32>
  } do {
    stablehlo.return %y : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
// -----
// CHECK: why: get_tuple_element-C1: a tuple of 1 has no element 1
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.tuple %x : tuple<tensor<2xf32>>
  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<2xf32>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
