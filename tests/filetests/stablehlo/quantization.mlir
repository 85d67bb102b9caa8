// RUN: gcomp opt %s | filecheck %s

// Declared, so that programs that hold such types can be read; nothing computes with them.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  // CHECK-NEXT: %0 = stablehlo.uniform_quantize %x : (tensor<?xf32, ["n"]>) -> tensor<?x!quant.uniform<i8:f32, 2.000000e+00:15>, ["n"]>
  %0 = stablehlo.uniform_quantize %x : (tensor<?xf32, ["n"]>) -> tensor<?x!quant.uniform<i8:f32, 2.000000e+00:15>, ["n"]>
  // CHECK-NEXT: %1 = stablehlo.uniform_dequantize %0 : (tensor<?x!quant.uniform<i8:f32, 2.000000e+00:15>, ["n"]>) -> tensor<?xf32, ["n"]>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<?x!quant.uniform<i8:f32, 2.000000e+00:15>, ["n"]>) -> tensor<?xf32, ["n"]>
  return %1 : tensor<?xf32, ["n"]>
}
