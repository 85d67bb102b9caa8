"""Programs written by hand around what lowering and the runtime can get wrong, with inputs that show it.

Numbers are small and whole: what XLA may compute in another way, it computes to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gcomp.ir.program import Program

Array = np.ndarray[Any, Any]
Exhibits = Iterator[tuple[str, Program, list[list[Array]]]]

COMPARISONS = """
func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>, %u: tensor<4xui8>, %v: tensor<4xui8>)
    -> (tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<4xi1>) {
  %a = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %b = stablehlo.compare LT, %x, %y, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %c = stablehlo.compare NE, %x, %y : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %d = stablehlo.compare GE, %u, %v, UNSIGNED : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  return %a, %b, %c, %d : tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<4xi1>
}"""

MOVES = """
func.func @main(%x: tensor<3x4x3xi32>, %p: tensor<i1>, %z: tensor<i32>)
    -> (tensor<2x2x1xi32>, tensor<3x3x4xi32>, tensor<3x3x4x3xi32>, tensor<3x4x3xi32>, tensor<3x4x6xi32>,
        tensor<3x3xi32>, tensor<8x3x3xi32>, tensor<3x4x3xi32>) {
  %a = stablehlo.slice %x [0:3:2, 1:4:2, 1:2] : (tensor<3x4x3xi32>) -> tensor<2x2x1xi32>
  %b = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<3x4x3xi32>) -> tensor<3x3x4xi32>
  %c = stablehlo.broadcast_in_dim %x, dims = [1, 2, 3] : (tensor<3x4x3xi32>) -> tensor<3x3x4x3xi32>
  %d = stablehlo.reverse %x, dims = [0, 2] : tensor<3x4x3xi32>
  %e = stablehlo.concatenate %d, %x, dim = 2 : (tensor<3x4x3xi32>, tensor<3x4x3xi32>) -> tensor<3x4x6xi32>
  %f = stablehlo.iota dim = 1 : tensor<3x3xi32>
  %g = stablehlo.pad %b, %z, low = [2, -1, 0], high = [1, 1, -1], interior = [1, 0, 0]
    : (tensor<3x3x4xi32>, tensor<i32>) -> tensor<8x3x3xi32>
  %h = stablehlo.select %p, %x, %d : tensor<i1>, tensor<3x4x3xi32>
  return %a, %b, %c, %d, %e, %f, %g, %h : tensor<2x2x1xi32>, tensor<3x3x4xi32>, tensor<3x3x4x3xi32>,
    tensor<3x4x3xi32>, tensor<3x4x6xi32>, tensor<3x3xi32>, tensor<8x3x3xi32>, tensor<3x4x3xi32>
}"""

CONTRACTIONS = """
func.func @main(%x: tensor<3x2x3xf32>, %y: tensor<3x3x2xf32>, %i: tensor<1x5x6x2xf32>, %k: tensor<3x2x1x4xf32>)
    -> (tensor<2x3x3xf32>, tensor<3x3xf32>, tensor<1x4x3x4xf32>) {
  %a = stablehlo.dot_general %x, %y, batching_dims = [1] x [2], contracting_dims = [0] x [1]
    : (tensor<3x2x3xf32>, tensor<3x3x2xf32>) -> tensor<2x3x3xf32>
  %b = stablehlo.dot_general %x, %y, contracting_dims = [2, 1] x [0, 2]
    : (tensor<3x2x3xf32>, tensor<3x3x2xf32>) -> tensor<3x3xf32>
  %c = "stablehlo.convolution"(%i, %k) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      feature_group_count = 2 : i64, batch_group_count = 1 : i64, window_strides = array<i64: 1, 2>,
      padding = dense<[[1, 0], [0, 2]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 2>,
      window_reversal = array<i1: true, false>}>
    : (tensor<1x5x6x2xf32>, tensor<3x2x1x4xf32>) -> tensor<1x4x3x4xf32>
  return %a, %b, %c : tensor<2x3x3xf32>, tensor<3x3xf32>, tensor<1x4x3x4xf32>
}"""

FOLDS = """
func.func @main(%x: tensor<3x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>)
    -> (tensor<3xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %a = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [1]
    : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  %b = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
    : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>,
      window_dilations = array<i64: 1, 2>, padding = dense<[[1, 0], [0, 1]]> : tensor<2x2xi64>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<2x3xf32>
  %d = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.subtract %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %e = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
    : (tensor<3x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  %f = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.compare GT, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %a, %b, %c, %d, %e, %f : tensor<3xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<3x4xf32>, tensor<3x4xf32>,
    tensor<3x4xf32>
}"""

CONSTANTS = """
func.func @main(%x: tensor<2xi64>)
    -> (tensor<3xui32>, tensor<2xui16>, tensor<2xi64>, tensor<3xui64>, tensor<2xui8>, tensor<f64>, tensor<2x2xi8>) {
  %a = stablehlo.constant dense<[-0.0, 0x7FC00123, 1.0e-40]> : tensor<3xf32>
  %b = stablehlo.bitcast_convert %a : (tensor<3xf32>) -> tensor<3xui32>
  %c = stablehlo.constant dense<[-0.0, 3.3895313892515355e+38]> : tensor<2xbf16>
  %d = stablehlo.bitcast_convert %c : (tensor<2xbf16>) -> tensor<2xui16>
  %e = stablehlo.constant dense<[-9223372036854775808, 4294967297]> : tensor<2xi64>
  %f = stablehlo.add %x, %e : tensor<2xi64>
  %g = stablehlo.constant dense<18446744073709551615> : tensor<3xui64>
  %h = stablehlo.constant dense<-0.0> : tensor<2xf8E5M2>
  %i = stablehlo.bitcast_convert %h : (tensor<2xf8E5M2>) -> tensor<2xui8>
  %j = stablehlo.constant dense<0.12345678901234567> : tensor<f64>
  %k = stablehlo.constant dense<[[1, -2], [3, -128]]> : tensor<2x2xi8>
  return %b, %d, %f, %g, %i, %j, %k
    : tensor<3xui32>, tensor<2xui16>, tensor<2xi64>, tensor<3xui64>, tensor<2xui8>, tensor<f64>, tensor<2x2xi8>
}"""

OUTPUTS = """
func.func @main(%x: tensor<3xi32>, %y: tensor<3xi32>)
    -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) {
  %d = stablehlo.subtract %x, %y : tensor<3xi32>
  %q = stablehlo.divide %x, %y : tensor<3xi32>
  return %y, %d, %q, %d, %x : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
}"""

SWAPS = """
func.func @main(%n: tensor<i32>, %a: tensor<2xi32>, %b: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:3 = "stablehlo.while"(%zero, %a, %b) ({
  ^bb0(%i: tensor<i32>, %x: tensor<2xi32>, %y: tensor<2xi32>):
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %x: tensor<2xi32>, %y: tensor<2xi32>):
    %k = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.subtract %x, %y : tensor<2xi32>
    stablehlo.return %k, %y, %d : tensor<i32>, tensor<2xi32>, tensor<2xi32>
  }) : (tensor<i32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<i32>, tensor<2xi32>, tensor<2xi32>)
  return %r#1, %r#2 : tensor<2xi32>, tensor<2xi32>
}"""

WEIGHTS = """
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %b = gcomp.weight @b : tensor<2xf32>
  %0 = func.call @inner(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.subtract %0, %b : tensor<2xf32>
  %2 = stablehlo.composite "my.op" %x {decomposition = @other} : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
func.func private @inner(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = gcomp.weight @a : tensor<2xf32>
  %b = gcomp.weight @b : tensor<2xf32>
  %0 = stablehlo.multiply %x, %a : tensor<2xf32>
  %1 = stablehlo.subtract %0, %b : tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @other(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = gcomp.weight @c : tensor<2xf32>
  %a = gcomp.weight @a : tensor<2xf32>
  %0 = stablehlo.multiply %x, %c : tensor<2xf32>
  %1 = stablehlo.subtract %0, %a : tensor<2xf32>
  return %1 : tensor<2xf32>
}"""

SYMBOLS = """
module attributes {gcomp.ranges = {n = "0..8", m = "1..8"}} {
func.func @main(%x: tensor<?x?xi32, ["n", "m"]>, %y: tensor<?xi32, ["m"]>)
    -> (tensor<?x?xi32, ["m", "n"]>, tensor<i64>, tensor<?xi32, ["2*m - 1"]>, tensor<i32>) {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xi32, ["n", "m"]>) -> tensor<?x?xi32, ["m", "n"]>
  %d = gcomp.dim "m*n + 2*n" : tensor<i64>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %p = "stablehlo.pad"(%y, %zero) <{edge_padding_low = array<i64: 0>, edge_padding_high = ["m - 1"],
      interior_padding = array<i64: 0>}>
    : (tensor<?xi32, ["m"]>, tensor<i32>) -> tensor<?xi32, ["2*m - 1"]>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<?x?xi32, ["n", "m"]>, tensor<i32>) -> tensor<i32>
  return %t, %d, %p, %s : tensor<?x?xi32, ["m", "n"]>, tensor<i64>, tensor<?xi32, ["2*m - 1"]>, tensor<i32>
}
}"""

DONATED = """
func.func @main(%x: tensor<3xf32> {gcomp.name = "x", gcomp.donated}, %y: tensor<3xf32> {gcomp.name = "y"},
    %z: tensor<3xf32> {gcomp.name = "z", gcomp.donated})
    -> (tensor<3xf32> {gcomp.name = "a"}, tensor<3xf32> {gcomp.name = "b"}) {
  %0 = stablehlo.subtract %x, %y : tensor<3xf32>
  %1 = stablehlo.subtract %z, %x : tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}"""

DATA_DEPENDENT = """
module attributes {gcomp.ranges = {k = "0..", b = "1.."}} {
func.func @main(%x: tensor<?x4xf32, ["b", "4"]>) -> (tensor<?xf32, ["k"]>, tensor<i64>, tensor<?x4xf32, ["b", "4"]>) {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %twos = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<?x4xf32, ["b", "4"]>
  %y = stablehlo.subtract %x, %twos : tensor<?x4xf32, ["b", "4"]>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<?x4xf32, ["b", "4"]>, tensor<f32>) -> tensor<f32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<?x4xf32, ["b", "4"]>, tensor<f32>) -> tensor<f32>
  %i = "gcomp.host"(%y) <{function = "nonzero", config = {}}> : (tensor<?x4xf32, ["b", "4"]>)
    -> tensor<2x?xi64, ["2", "k"]>
  %r = "stablehlo.slice"(%i) <{start_indices = array<i64: 1, 0>, limit_indices = ["2", "k"],
    strides = array<i64: 1, 1>}> : (tensor<2x?xi64, ["2", "k"]>) -> tensor<1x?xi64, ["1", "k"]>
  %f = stablehlo.reshape %r : (tensor<1x?xi64, ["1", "k"]>) -> tensor<?xi64, ["k"]>
  %ss = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<?xf32, ["k"]>
  %tt = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<?xf32, ["k"]>
  %d = stablehlo.subtract %ss, %tt : tensor<?xf32, ["k"]>
  %g = stablehlo.convert %f : (tensor<?xi64, ["k"]>) -> tensor<?xf32, ["k"]>
  %h = stablehlo.add %g, %d : tensor<?xf32, ["k"]>
  %n = gcomp.dim "b + k" : tensor<i64>
  return %h, %n, %y : tensor<?xf32, ["k"]>, tensor<i64>, tensor<?x4xf32, ["b", "4"]>
}
}"""


def exhibits(seed: int) -> Exhibits:
    """The programs, each with the inputs of its calls."""
    rng = np.random.default_rng(seed)

    def whole(*shape: int, dtype: Any = np.float32) -> Array:
        return np.asarray(rng.integers(-5, 6, shape)).astype(dtype)

    def number(value: int, dtype: Any = np.int32) -> Array:
        return np.array(value, dtype)

    edges = np.array([0.0, -0.0, 1.0, np.nan, -np.nan, np.inf], np.float32)
    unsigned = np.array([0, 1, 128, 255], np.uint8)
    yield "comparisons", Program.parse(COMPARISONS), [
        [rng.permutation(edges), rng.permutation(edges), unsigned, rng.permutation(unsigned)] for _ in range(2)
    ]  # fmt: skip
    yield "moves", Program.parse(MOVES), [
        [whole(3, 4, 3, dtype=np.int32), np.array(flag), number(7)] for flag in (True, False)
    ]  # fmt: skip
    yield "contractions", Program.parse(CONTRACTIONS), [
        [whole(3, 2, 3), whole(3, 3, 2), whole(1, 5, 6, 2), whole(3, 2, 1, 4)] for _ in range(2)
    ]  # fmt: skip
    yield "folds", Program.parse(FOLDS), [
        [whole(3, 4), np.array(indices, np.int32)[:, None], whole(3, 4)] for indices in ([2, 0, 2], [1, 1, 5])
    ]  # fmt: skip
    yield "constants", Program.parse(CONSTANTS), [[np.array([1, -1])], [np.array([-1, 2**40])]]
    yield "outputs", Program.parse(OUTPUTS), [
        [whole(3, dtype=np.int32) * 3, np.array([2, -2, 0], np.int32)] for _ in range(2)
    ]  # fmt: skip
    yield "swaps", Program.parse(SWAPS), [
        [number(n), whole(2, dtype=np.int32), whole(2, dtype=np.int32)] for n in (3, 0, 4)
    ]  # fmt: skip
    weighted = Program.parse(WEIGHTS)
    for name, values in (("a", [2, 3]), ("b", [5, -7]), ("c", [-1, 11])):
        weighted.weights.add(name, np.array(values, np.float32))
    yield "weights", weighted, [[whole(2)], [whole(2)]]
    yield "symbols", Program.parse(SYMBOLS), [
        [whole(n, m, dtype=np.int32), whole(m, dtype=np.int32)] for n, m in ((2, 3), (3, 2), (2, 3), (6, 1), (0, 2))
    ]  # fmt: skip
    yield "donated", Program.parse(DONATED), [[whole(3), whole(3), whole(3)] for _ in range(2)]
    yield "data-dependent sizes", Program.parse(DATA_DEPENDENT), [
        [np.asarray(rng.integers(1, 4, (b, 4))).astype(np.float32)] for b in (1, 3, 3)
    ]  # fmt: skip
