// RUN: gcomp opt %s -p fuse | filecheck %s

// What a loop starts from lies in memory, and is no kernel; what its kernels read of constants is computed in them.
// CHECK-LABEL: @main
// CHECK-NEXT: [[ZERO:%.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: stablehlo.while({{.*}} = [[ZERO]], {{.*}} = %x)
// CHECK: kernel.launch loop "compare" (
// CHECK-NEXT: stablehlo.constant dense<9>
// CHECK: kernel.launch loop "multiply"
// CHECK-NEXT: [[ONE:%.*]] = stablehlo.constant dense<2.0>
// CHECK-NEXT: stablehlo.broadcast_in_dim [[ONE]]
// CHECK: kernel.launch loop "add"
// CHECK-NEXT: stablehlo.constant dense<1>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %twos = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %nine, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.multiply %y, %twos : tensor<4xf32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}
