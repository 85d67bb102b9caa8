// RUN: gcomp opt %s -p "rematerialize{budget=36KiB}" --check-each | filecheck %s

// What is broadcast at first is read again at the end: it is made twice, and does not live while two others do.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  // CHECK: [[A:%.*]] = kernel.launch loop "wide"
  // CHECK: kernel.launch sort "sort" (%a = [[A]])
  // CHECK: kernel.launch sort "again"
  // CHECK: [[B:%.*]] = kernel.launch loop "wide"
  // CHECK: kernel.launch loop "add" (%a = {{.*}}, %b = [[B]])
  %0 = kernel.launch loop "wide" (%a = %x) : (tensor<64xf32>) -> tensor<64x64xf32> {
    %1 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
    stablehlo.return %1 : tensor<64x64xf32>
  }
  %2 = kernel.launch sort "sort" (%a = %0) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    %3 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%b: tensor<f32>, %c: tensor<f32>):
      %4 = stablehlo.compare LT, %b, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }) : (tensor<64x64xf32>) -> tensor<64x64xf32>
    stablehlo.return %3 : tensor<64x64xf32>
  }
  %5 = kernel.launch sort "again" (%a = %2) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
    %6 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%b: tensor<f32>, %c: tensor<f32>):
      %7 = stablehlo.compare GT, %b, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    }) : (tensor<64x64xf32>) -> tensor<64x64xf32>
    stablehlo.return %6 : tensor<64x64xf32>
  }
  %8 = kernel.launch loop "add" (%a = %5, %b = %0) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
    %9 = stablehlo.add %a, %b : tensor<64x64xf32>
    stablehlo.return %9 : tensor<64x64xf32>
  }
  %10 = kernel.launch reduction "sum" (%a = %8) : (tensor<64x64xf32>) -> tensor<64xf32> {
    %11 = stablehlo.constant dense<0.0> : tensor<f32>
    %12 = stablehlo.reduce(%a init: %11) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    stablehlo.return %12 : tensor<64xf32>
  }
  return %10 : tensor<64xf32>
}
