// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: launch-C1: there is no kind of kernel 'lop'; there are: loop, reduction,
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kernel.launch lop (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    stablehlo.return %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
// -----
// CHECK: why: launch-C3: a region returns (tensor<4xf32>), expected (tensor<5xf32>)
func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {
  %0 = kernel.launch loop (%a = %x) : (tensor<4xf32>) -> tensor<5xf32> {
    stablehlo.return %a : tensor<4xf32>
  }
  return %0 : tensor<5xf32>
}
// -----
// CHECK: why: launch-C4: a loop kernel cannot hold stablehlo.sort, which has the role sort
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kernel.launch loop (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %1 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%b: tensor<f32>, %c: tensor<f32>):
      %2 = stablehlo.compare LT, %b, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
// -----
// CHECK: the kernel has 1 operands and 2 types for them
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kernel.launch loop (%a = %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    stablehlo.return %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
// -----
// CHECK: why: Operation using value defined out of its IsolatedFromAbove parent
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kernel.launch loop () : () -> tensor<4xf32> {
    stablehlo.return %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
