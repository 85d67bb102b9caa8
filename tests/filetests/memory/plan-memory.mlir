// RUN: gcomp opt %s -p "plan-memory" --check-each | filecheck %s

// Two results are alive together; the third takes the place of the first, and the sum is written over an operand.
// CHECK: buffer.arena = 8192 : i64
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  // CHECK: kernel.launch sort (%a = %x) attributes {buffer.places = [[[A:[0-9]+]] : i64]}
  %0 = kernel.launch sort (%a = %x) : (tensor<1024xf32>) -> tensor<1024xf32> {
    %1 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%b: tensor<f32>, %c: tensor<f32>):
      %2 = stablehlo.compare LT, %b, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }) : (tensor<1024xf32>) -> tensor<1024xf32>
    stablehlo.return %1 : tensor<1024xf32>
  }
  // A reversed reading must not be written over.
  // CHECK: kernel.launch loop (%a = %0) attributes {buffer.places = [[[B:[0-9]+]] : i64]}
  %3 = kernel.launch loop (%a = %0) : (tensor<1024xf32>) -> tensor<1024xf32> {
    %4 = stablehlo.reverse %a, dims = [0] : tensor<1024xf32>
    stablehlo.return %4 : tensor<1024xf32>
  }
  // CHECK: kernel.launch loop (%a = %1) attributes {buffer.places = [[[B]] : i64]}
  %5 = kernel.launch loop (%a = %3) : (tensor<1024xf32>) -> tensor<1024xf32> {
    %6 = stablehlo.negate %a : tensor<1024xf32>
    stablehlo.return %6 : tensor<1024xf32>
  }
  return %5 : tensor<1024xf32>
}
