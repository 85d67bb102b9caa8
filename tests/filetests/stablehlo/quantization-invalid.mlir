// RUN: not gcomp opt %s --split | filecheck %s

// CHECK: why: uniform_quantize-C1: tensor<2xf32> and tensor<3x!quant.uniform<i8:f32, 2.000000e+00:15>> have different shapes
func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<3x!quant.uniform<i8:f32, 2.000000e+00:15>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<3x!quant.uniform<i8:f32, 2.000000e+00:15>>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
// -----
// CHECK: why: uniform_dequantize-C2: the result tensor<2xi32> does not hold floats
func.func @main(%x: tensor<2xf32>) -> tensor<2xi32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 2.000000e+00:15>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<2x!quant.uniform<i8:f32, 2.000000e+00:15>>) -> tensor<2xi32>
  return %1 : tensor<2xi32>
}
