// RUN: gcomp opt %s --split -p complex-to-pairs | filecheck %s

// A product is four, each step rounded; what is taken and returned stays complex.
// CHECK-LABEL: @main
func.func @main(%x: tensor<3xcomplex<f32>>, %y: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  // CHECK-NEXT: [[XR:%.*]] = stablehlo.real %x
  // CHECK-NEXT: [[YR:%.*]] = stablehlo.real %y
  // CHECK-NEXT: [[A:%.*]] = stablehlo.multiply [[XR]], [[YR]] : tensor<3xf32>
  // CHECK-NEXT: [[XI:%.*]] = stablehlo.imag %x
  // CHECK-NEXT: [[YI:%.*]] = stablehlo.imag %y
  // CHECK-NEXT: [[B:%.*]] = stablehlo.multiply [[XI]], [[YI]] : tensor<3xf32>
  // CHECK-NEXT: [[RE:%.*]] = stablehlo.subtract [[A]], [[B]]
  // CHECK: [[IM:%.*]] = stablehlo.add
  // CHECK-NEXT: [[Z:%.*]] = stablehlo.complex [[RE]], [[IM]]
  // CHECK-NEXT: return [[Z]]
  %0 = stablehlo.multiply %x, %y : tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}
// -----
// Between ops there are parts only: nothing is put together to be taken apart.
// CHECK-LABEL: @main
func.func @main(%x: tensor<3xcomplex<f32>>, %y: tensor<3xcomplex<f32>>) -> tensor<3xi1> {
  // CHECK-NOT: complex %
  // CHECK: [[R:%.*]] = stablehlo.transpose {{.*}} -> tensor<3xf32>
  // CHECK: [[I:%.*]] = stablehlo.transpose {{.*}} -> tensor<3xf32>
  // CHECK: [[A:%.*]] = stablehlo.compare EQ, [[R]],
  // CHECK: [[B:%.*]] = stablehlo.compare EQ, [[I]],
  // CHECK-NEXT: stablehlo.and [[A]], [[B]]
  %0 = stablehlo.add %x, %y : tensor<3xcomplex<f32>>
  %1 = stablehlo.transpose %0, dims = [0] : (tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>
  %2 = stablehlo.compare EQ, %1, %y, FLOAT : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<3xi1>
  return %2 : tensor<3xi1>
}
// -----
// Constants are two.
// CHECK-LABEL: @main
func.func @main() -> tensor<2xcomplex<f32>> {
  // CHECK-NEXT: [[R:%.*]] = stablehlo.constant dense<[1.0, 3.0]> : tensor<2xf32>
  // CHECK-NEXT: [[I:%.*]] = stablehlo.constant dense<[2.0, 4.0]> : tensor<2xf32>
  // CHECK-NEXT: stablehlo.negate [[R]]
  // CHECK-NEXT: stablehlo.negate [[I]]
  // CHECK-NEXT: stablehlo.complex
  %0 = stablehlo.constant dense<[(1.0,2.0), (3.0,4.0)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.negate %0 : tensor<2xcomplex<f32>>
  return %1 : tensor<2xcomplex<f32>>
}
// -----
// A sum folds either part by itself; a product folds both together.
// CHECK-LABEL: @main
func.func @main(%x: tensor<3xcomplex<f32>>, %i: tensor<complex<f32>>) -> (tensor<complex<f32>>, tensor<complex<f32>>) {
  // CHECK: [[A:%.*]] = stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  // CHECK-NEXT: [[B:%.*]] = stablehlo.reduce({{.*}}) applies stablehlo.add across
  // CHECK-NEXT: stablehlo.complex [[A]], [[B]]
  // CHECK: [[C:%.*]], [[D:%.*]] = stablehlo.reduce({{.*}}), ({{.*}}) across dimensions = [0] : (tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>)
  // CHECK-NEXT: reducer([[AR:%.*]]: tensor<f32>, [[BR:%.*]]: tensor<f32>) ([[AI:%.*]]: tensor<f32>, [[BI:%.*]]: tensor<f32>) {
  // CHECK-NEXT: stablehlo.multiply [[AR]], [[BR]]
  // CHECK-NEXT: stablehlo.multiply [[AI]], [[BI]]
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  %1 = stablehlo.reduce(%x init: %i) applies stablehlo.multiply across dimensions = [0] : (tensor<3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  return %0, %1 : tensor<complex<f32>>, tensor<complex<f32>>
}
// -----
// A comparator gets two of each: both real parts, then both imaginary ones.
// CHECK-LABEL: @main
func.func @main(%k: tensor<4xf32>, %x: tensor<4xcomplex<f32>>) -> (tensor<4xf32>, tensor<4xcomplex<f32>>) {
  // CHECK: "stablehlo.sort"(%k, [[R:%.*]], [[I:%.*]]) <{dimension = 0 : i64, is_stable = true}>
  // CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>, [[CR:%.*]]: tensor<f32>, {{.*}}: tensor<f32>, {{.*}}: tensor<f32>, [[DI:%.*]]: tensor<f32>):
  // CHECK-NEXT: stablehlo.compare LT, [[CR]], [[DI]]
  %0, %1 = "stablehlo.sort"(%k, %x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<complex<f32>>, %d: tensor<complex<f32>>):
    %s = stablehlo.real %c : (tensor<complex<f32>>) -> tensor<f32>
    %t = stablehlo.imag %d : (tensor<complex<f32>>) -> tensor<f32>
    %u = stablehlo.compare LT, %s, %t, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %u : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xcomplex<f32>>) -> (tensor<4xf32>, tensor<4xcomplex<f32>>)
  return %0, %1 : tensor<4xf32>, tensor<4xcomplex<f32>>
}
// -----
// A loop carries both parts.
// CHECK-LABEL: @main
func.func @main(%p: tensor<i1>, %x: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  // CHECK: stablehlo.while(%q = %p, [[R:%.*]] = {{.*}}, [[I:%.*]] = {{.*}}) : tensor<i1>, tensor<3xf32>, tensor<3xf32>
  // CHECK: stablehlo.add [[R]], [[R]]
  // CHECK: stablehlo.add [[I]], [[I]]
  %0, %1 = stablehlo.while(%q = %p, %v = %x) : tensor<i1>, tensor<3xcomplex<f32>>
  cond {
    stablehlo.return %q : tensor<i1>
  } do {
    %f = stablehlo.constant dense<false> : tensor<i1>
    %w = stablehlo.add %v, %v : tensor<3xcomplex<f32>>
    stablehlo.return %f, %w : tensor<i1>, tensor<3xcomplex<f32>>
  }
  return %1 : tensor<3xcomplex<f32>>
}
// -----
// A transform is a product with roots of unity: of two elements, their sum and difference.
// CHECK-LABEL: @main
func.func @main(%x: tensor<3x2xf32>) -> tensor<3x2xcomplex<f32>> {
  // CHECK-NEXT: [[M:%.*]] = stablehlo.constant dense<{{\[\[}}1.0, 1.0], [1.0, -1.0]]> : tensor<2x2xf32>
  // CHECK-NEXT: [[R:%.*]] = stablehlo.dot_general %x, [[M]]
  // CHECK: stablehlo.complex [[R]],
  %0 = stablehlo.fft %x, type = RFFT, length = [2] : (tensor<3x2xf32>) -> tensor<3x2xcomplex<f32>>
  return %0 : tensor<3x2xcomplex<f32>>
}
// -----
// Of a symbolic length the roots are computed: n-th ones, of each pair of indices.
// CHECK-LABEL: @main
func.func @main(%x: tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xcomplex<f32>, ["n"]> {
  // CHECK-NOT: stablehlo.fft
  // CHECK: stablehlo.cosine {{.*}} : tensor<?x?xf64, ["n", "n"]>
  // CHECK-COUNT-4: stablehlo.dot_general
  %0 = stablehlo.fft %x, type = FFT, length = ["n"] : (tensor<?xcomplex<f32>, ["n"]>) -> tensor<?xcomplex<f32>, ["n"]>
  return %0 : tensor<?xcomplex<f32>, ["n"]>
}
