"""Small models for the tests beside this file: their IR text, their weights, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.runtime.model import Model

Array = np.ndarray[Any, Any]

CONV_NET = """
module attributes {gcomp.ranges = {batch = "1..64"}} {
func.func public @main(%x: tensor<?x8x8x1xf32, ["batch", "8", "8", "1"]> {gcomp.name = "image"})
    -> (tensor<?x10xf32, ["batch", "10"]> {gcomp.name = "logits"}, tensor<i64> {gcomp.name = "count"}) {
  %w = gcomp.weight @conv.w : tensor<3x3x1x4xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<?x8x8x1xf32, ["batch", "8", "8", "1"]>, tensor<3x3x1x4xf32>)
    -> tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>
  %1 = func.call @bias_relu(%0) : (tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>)
    -> tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %2 = "stablehlo.reduce_window"(%1, %low) <{window_dimensions = array<i64: 1, 2, 2, 1>,
      window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>, tensor<f32>)
    -> tensor<?x4x4x4xf32, ["batch", "4", "4", "4"]>
  %3 = stablehlo.reshape %2 : (tensor<?x4x4x4xf32, ["batch", "4", "4", "4"]>) -> tensor<?x64xf32, ["batch", "64"]>
  %d = gcomp.weight @dense.w : tensor<64x10xf32>
  %4 = stablehlo.dot_general %3, %d, contracting_dims = [1] x [0]
    : (tensor<?x64xf32, ["batch", "64"]>, tensor<64x10xf32>) -> tensor<?x10xf32, ["batch", "10"]>
  %n = gcomp.dim "64*batch" : tensor<i64>
  func.return %4, %n : tensor<?x10xf32, ["batch", "10"]>, tensor<i64>
}
func.func private @bias_relu(%x: tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>)
    -> tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]> {
  %b = gcomp.weight @conv.b : tensor<4xf32>
  %0 = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<4xf32>) -> tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>
  %1 = stablehlo.add %x, %0 : tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>
  %3 = stablehlo.maximum %1, %2 : tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>
  func.return %3 : tensor<?x8x8x4xf32, ["batch", "8", "8", "4"]>
}
}
"""

_FITS = r"{'kind': 'le', 'lhs': 'batch', 'rhs': 'seq', 'where': 'node halve'}".replace("'", r"\22")

TWO_SYMBOLS = """
module attributes {
  gcomp.ranges = {batch = "1..8", seq = "2..64 step 2"},
  gcomp.constraints = ["CONSTRAINT"]
} {
func.func public @main(%x: tensor<?x?xi32, ["batch", "seq"]> {gcomp.name = "x"},
                       %y: tensor<?xi32, ["2*batch + 1"]> {gcomp.name = "y"})
    -> (tensor<?x?xi32, ["batch", "floordiv(seq, 2)"]> {gcomp.name = "half"},
        tensor<?xi32, ["2*batch + 1"]> {gcomp.name = "same"}) {
  %0 = stablehlo.slice %x [0:"batch", 0:"seq":2]
    : (tensor<?x?xi32, ["batch", "seq"]>) -> tensor<?x?xi32, ["batch", "floordiv(seq + 1, 2)"]>
  %1 = stablehlo.slice %x [0:"batch", 0:"floordiv(seq, 2)"]
    : (tensor<?x?xi32, ["batch", "seq"]>) -> tensor<?x?xi32, ["batch", "floordiv(seq, 2)"]>
  func.return %1, %y : tensor<?x?xi32, ["batch", "floordiv(seq, 2)"]>, tensor<?xi32, ["2*batch + 1"]>
}
}
""".replace("CONSTRAINT", _FITS)

UPDATE = """
module {
func.func public @main(%cache: tensor<?x4xf32, ["n", "4"]> {gcomp.name = "cache", gcomp.donated},
                       %row: tensor<1x4xf32> {gcomp.name = "row"},
                       %at: tensor<i32> {gcomp.name = "at"})
    -> (tensor<1x4xf32> {gcomp.name = "echo"}, tensor<?x4xf32, ["n", "4"]> {gcomp.name = "new"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %cache, %row, %at, %zero
    : (tensor<?x4xf32, ["n", "4"]>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<?x4xf32, ["n", "4"]>
  func.return %row, %0 : tensor<1x4xf32>, tensor<?x4xf32, ["n", "4"]>
}
}
"""


def conv_weights() -> dict[str, Array]:
    """Weights of CONV_NET: small integers, so that every sum is exact in float32 whatever its order."""
    random = np.random.default_rng(7)

    def integers(*shape: int) -> Array:
        return random.integers(-3, 4, size=shape).astype(np.float32)

    return {"conv.w": integers(3, 3, 1, 4), "conv.b": integers(4), "dense.w": integers(64, 10)}


def images(count: int) -> Array:
    """Inputs of CONV_NET."""
    return np.random.default_rng(count).integers(0, 17, size=(count, 8, 8, 1)).astype(np.float32)


def conv_net(x: Array, weights: Mapping[str, Array]) -> Array:
    """What CONV_NET computes, in NumPy."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    features = np.einsum("bhwiyx,yxio->bhwo", windows, weights["conv.w"]) + weights["conv.b"]
    pooled = np.maximum(features, 0).reshape(len(x), 4, 2, 4, 2, 4).max(axis=(2, 4))
    return pooled.reshape(len(x), 64) @ weights["dense.w"]


def make_model(text: str, weights: Mapping[str, Array] | None = None) -> Model:
    """A model of IR text."""
    return Model(lower(Program.parse(text)), weights or {})
