// RUN: gcomp opt %s -p "order-for-memory" --check-each | filecheck %s

// Both large results are summed up before the other one is made.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: kernel.launch loop "a"
  // CHECK: kernel.launch reduction "sum"
  // CHECK: kernel.launch loop "b"
  // CHECK: kernel.launch reduction "sum"
  // CHECK: kernel.launch loop "add"
  %0 = kernel.launch loop "a" (%v = %x) : (tensor<f32>) -> tensor<4096xf32> {
    %1 = stablehlo.broadcast_in_dim %v, dims = [] : (tensor<f32>) -> tensor<4096xf32>
    stablehlo.return %1 : tensor<4096xf32>
  }
  %2 = kernel.launch loop "b" (%v = %x) : (tensor<f32>) -> tensor<4096xf32> {
    %3 = stablehlo.broadcast_in_dim %v, dims = [] : (tensor<f32>) -> tensor<4096xf32>
    stablehlo.return %3 : tensor<4096xf32>
  }
  %4 = kernel.launch reduction "sum" (%v = %0) : (tensor<4096xf32>) -> tensor<f32> {
    %5 = stablehlo.constant dense<0.0> : tensor<f32>
    %6 = stablehlo.reduce(%v init: %5) applies stablehlo.add across dimensions = [0] : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }
  %7 = kernel.launch reduction "sum" (%v = %2) : (tensor<4096xf32>) -> tensor<f32> {
    %8 = stablehlo.constant dense<0.0> : tensor<f32>
    %9 = stablehlo.reduce(%v init: %8) applies stablehlo.add across dimensions = [0] : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %9 : tensor<f32>
  }
  %10 = kernel.launch loop "add" (%v = %4, %w = %7) : (tensor<f32>, tensor<f32>) -> tensor<f32> {
    %11 = stablehlo.add %v, %w : tensor<f32>
    stablehlo.return %11 : tensor<f32>
  }
  return %10 : tensor<f32>
}
