// RUN: gcomp opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: @transposes
func.func @transposes(%x: tensor<2x3x5xf32>) -> tensor<5x2x3xf32> {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.transpose %x, dims = [2, 0, 1]
  // CHECK-NEXT: return [[R]]
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
  %1 = stablehlo.transpose %0, dims = [2, 1, 0] : (tensor<3x2x5xf32>) -> tensor<5x2x3xf32>
  return %1 : tensor<5x2x3xf32>
}

// CHECK-LABEL: @inverse_transposes
func.func private @inverse_transposes(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  // CHECK-NEXT: return %x
  %0 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<5x2x3xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// x - 0 is x for every float; x + 0 is not, because -0 + 0 is +0.
// CHECK-LABEL: @float_zero
func.func private @float_zero(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[S:%.*]] = stablehlo.add %x
  // CHECK-NEXT: return %x, [[S]], %x
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %minus = stablehlo.constant dense<-0.0> : tensor<4xf32>
  %0 = stablehlo.subtract %x, %zero : tensor<4xf32>
  %1 = stablehlo.add %x, %zero : tensor<4xf32>
  %2 = stablehlo.add %minus, %x : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// 0 * x is not 0 when x is infinite or NaN; for integers it is.
// CHECK-LABEL: @times_zero
func.func private @times_zero(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  // CHECK: [[F:%.*]] = stablehlo.multiply %x
  // CHECK: [[I:%.*]] = stablehlo.{{constant|broadcast_in_dim}}{{.*}}tensor<4xi32>
  // CHECK-NEXT: return [[F]], [[I]]
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %izero = stablehlo.constant dense<0> : tensor<4xi32>
  %0 = stablehlo.multiply %x, %zero : tensor<4xf32>
  %1 = stablehlo.multiply %i, %izero : tensor<4xi32>
  return %0, %1 : tensor<4xf32>, tensor<4xi32>
}

// CHECK-LABEL: @slices
func.func private @slices(%x: tensor<20xf32>) -> (tensor<3xf32>, tensor<20xf32>) {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.slice %x [4:15:5]
  // CHECK-NEXT: return [[R]], %x
  %0 = stablehlo.slice %x [4:20:5] : (tensor<20xf32>) -> tensor<4xf32>
  %1 = stablehlo.slice %0 [0:3] : (tensor<4xf32>) -> tensor<3xf32>
  %2 = stablehlo.slice %x [0:20] : (tensor<20xf32>) -> tensor<20xf32>
  return %1, %2 : tensor<3xf32>, tensor<20xf32>
}

// CHECK-LABEL: @symbolic
func.func private @symbolic(%x: tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]> {
  // CHECK-NEXT: return %x
  %0 = stablehlo.reshape %x : (tensor<?x4xf32, ["batch", "4"]>) -> tensor<?xf32, ["4*batch"]>
  %1 = stablehlo.reshape %0 : (tensor<?xf32, ["4*batch"]>) -> tensor<?x4xf32, ["batch", "4"]>
  %2 = stablehlo.slice %1 [0:"batch", 0:4] : (tensor<?x4xf32, ["batch", "4"]>) -> tensor<?x4xf32, ["batch", "4"]>
  return %2 : tensor<?x4xf32, ["batch", "4"]>
}
