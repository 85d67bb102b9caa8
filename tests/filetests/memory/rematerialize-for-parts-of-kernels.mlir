// RUN: gcomp opt %s -p rematerialize --check-each | filecheck %s

// Of the kernel that makes three results one is made again, which needs no sum: the sum is not made again for it.
// CHECK-LABEL: @main
// CHECK: kernel.launch reduction "reduce"
// CHECK-NOT: kernel.launch reduction "reduce"
builtin.module attributes {gcomp.ranges = {n = "1..2"}} {
  func.func public @main(%x: tensor<?x?xi32, ["n + 1", "n"]> {gcomp.name = "x"}, %y: tensor<i32> {gcomp.name = "y"}, %z: tensor<3x3xi32> {gcomp.name = "z"}) -> (tensor<3x3x1xi32> {gcomp.name = "r0"}, tensor<3x3xi32> {gcomp.name = "r1"}) {
    %0 = kernel.launch reduction "reduce" (%x_1 = %x) : (tensor<?x?xi32, ["n + 1", "n"]>) -> tensor<i32> {
      %1 = stablehlo.constant dense<0> : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }
    %1 = kernel.launch loop "convert" (%y_1 = %y) : (tensor<i32>) -> tensor<i32> {
      %2 = stablehlo.constant dense<0> : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }
    %2, %3, %4 = kernel.launch loop "compare_select_add" (%z_1 = %z, %5 = %0) : (tensor<3x3xi32>, tensor<i32>) -> (tensor<3x3xi32>, tensor<3x3xi32>, tensor<3x3xi32>) {
      %6 = stablehlo.constant dense<0> : tensor<3x3xi32>
      stablehlo.return %6, %6, %6 : tensor<3x3xi32>, tensor<3x3xi32>, tensor<3x3xi32>
    }
    %5 = "stablehlo.case"(%1) ({
      %6 = kernel.launch loop "broadcast_in_dim_concatenate" (%7 = %3) : (tensor<3x3xi32>) -> tensor<3x3xi32> {
        stablehlo.return %7 : tensor<3x3xi32>
      }
      stablehlo.return %6 : tensor<3x3xi32>
    }) : (tensor<i32>) -> tensor<3x3xi32>
    %7 = kernel.launch loop "bitcast_convert" (%8 = %2) : (tensor<3x3xi32>) -> tensor<3x3x1xi32> {
      %9 = stablehlo.constant dense<0> : tensor<3x3x1xi32>
      stablehlo.return %9 : tensor<3x3x1xi32>
    }
    func.return %7, %5 : tensor<3x3x1xi32>, tensor<3x3xi32>
  }
}
