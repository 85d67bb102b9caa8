// RUN: gcomp opt %s | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%p: tensor<i1>, %x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = "stablehlo.if"(%p) ({
  // CHECK-NEXT: %1 = stablehlo.negate %x : tensor<?xf32, ["n"]>
  // CHECK-NEXT: stablehlo.return %1 : tensor<?xf32, ["n"]>
  // CHECK-NEXT: }, {
  // CHECK-NEXT: stablehlo.return %x : tensor<?xf32, ["n"]>
  // CHECK-NEXT: }) : (tensor<i1>) -> tensor<?xf32, ["n"]>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.negate %x : tensor<?xf32, ["n"]>
    stablehlo.return %1 : tensor<?xf32, ["n"]>
  }, {
    stablehlo.return %x : tensor<?xf32, ["n"]>
  }) : (tensor<i1>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func private @case
func.func private @case(%i: tensor<i32>, %x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = "stablehlo.case"(%i) ({
  // CHECK-NEXT: stablehlo.return %x : tensor<?xf32, ["n"]>
  // CHECK-NEXT: }, {
  // CHECK-NEXT: %1 = stablehlo.sine %x : tensor<?xf32, ["n"]>
  // CHECK-NEXT: stablehlo.return %1 : tensor<?xf32, ["n"]>
  // CHECK-NEXT: }) : (tensor<i32>) -> tensor<?xf32, ["n"]>
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<?xf32, ["n"]>
  }, {
    %1 = stablehlo.sine %x : tensor<?xf32, ["n"]>
    stablehlo.return %1 : tensor<?xf32, ["n"]>
  }) : (tensor<i32>) -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}

// A loop's values have one name in both regions.
// CHECK-LABEL: func.func private @while
func.func private @while(%zero: tensor<i32>, %end: tensor<i32>, %x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0, %1 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<?xf32, ["n"]>
  // CHECK-NEXT: cond {
  // CHECK-NEXT: %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
  // CHECK-NEXT: stablehlo.return %p : tensor<i1>
  // CHECK-NEXT: } do {
  // CHECK-NEXT: %one = stablehlo.constant dense<1> : tensor<i32>
  // CHECK-NEXT: %next = stablehlo.add %i, %one : tensor<i32>
  // CHECK-NEXT: %z = stablehlo.add %y, %x : tensor<?xf32, ["n"]>
  // CHECK-NEXT: stablehlo.return %next, %z : tensor<i32>, tensor<?xf32, ["n"]>
  // CHECK-NEXT: }
  %0, %1 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<?xf32, ["n"]>
  cond {
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.add %y, %x : tensor<?xf32, ["n"]>
    stablehlo.return %next, %z : tensor<i32>, tensor<?xf32, ["n"]>
  }
  return %1 : tensor<?xf32, ["n"]>
}

// CHECK-LABEL: func.func private @optimization_barrier
func.func private @optimization_barrier(%x: tensor<?xf32, ["n"]>, %y: tensor<i32>) -> (tensor<?xf32, ["n"]>, tensor<i32>) {
  // CHECK-NEXT: %0, %1 = stablehlo.optimization_barrier %x, %y : tensor<?xf32, ["n"]>, tensor<i32>
  %0, %1 = stablehlo.optimization_barrier %x, %y : tensor<?xf32, ["n"]>, tensor<i32>
  return %0, %1 : tensor<?xf32, ["n"]>, tensor<i32>
}

// CHECK-LABEL: func.func private @tokens
func.func private @tokens() -> !stablehlo.token {
  // CHECK-NEXT: %0 = stablehlo.create_token : !stablehlo.token
  %0 = stablehlo.create_token : !stablehlo.token
  // CHECK-NEXT: %1 = stablehlo.after_all %0, %0 : !stablehlo.token
  %1 = stablehlo.after_all %0, %0 : !stablehlo.token
  return %1 : !stablehlo.token
}

// CHECK-LABEL: func.func private @tuples
func.func private @tuples(%x: tensor<?xf32, ["n"]>, %y: tensor<i32>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.tuple %x, %y : tuple<tensor<?xf32, ["n"]>, tensor<i32>>
  %0 = stablehlo.tuple %x, %y : tuple<tensor<?xf32, ["n"]>, tensor<i32>>
  // CHECK-NEXT: %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<?xf32, ["n"]>, tensor<i32>>) -> tensor<?xf32, ["n"]>
  %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<?xf32, ["n"]>, tensor<i32>>) -> tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}
