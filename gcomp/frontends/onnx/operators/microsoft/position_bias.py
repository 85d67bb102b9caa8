"""Importers of com.microsoft: biases of attention scores that depend on how far apart positions are."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import operand_sizes
from gcomp.frontends.onnx.engine.registry import Results
from gcomp.frontends.onnx.model.values import Array
from gcomp.frontends.onnx.operators.elementwise import bound_values
from gcomp.frontends.onnx.operators.microsoft.signature import contrib, positive, wide_type
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.gathering import take
from gcomp.ir.types import shape_of


@contrib("RelativePositionBias", "bias_table:T[2] query_length:i64 key_length:i64", "max_distance! is_bidirectional")
def relative_position_bias(ctx: NodeContext) -> Results:
    """RelativePositionBias: T5's bias of each head for the bucket that a distance falls into, (1, heads, rows, keys).

    The table is declared (buckets, heads) and stored by columns: its elements in order are those of (heads, buckets).
    """
    b, farthest = ctx.b, positive(ctx, "max_distance")
    buckets = ctx.static(ctx.shape()[0], "number of buckets")
    heads = ctx.shape()[1]
    lengths = [_length(ctx, i) for i in (1, 2)]
    per_side = buckets // 2 if ctx.flag("is_bidirectional") else buckets
    if per_side < 2 or farthest <= per_side // 2:
        ctx.invalid(f"max_distance is {farthest} with {buckets} buckets", "half of a side's buckets are for less")
    table = b.reshape(ctx[0], (heads, buckets))
    rows = take(b, table, _buckets(ctx, (lengths[0], lengths[1]), per_side, farthest), 1)
    return [b.reshape(rows, (1, heads, *lengths))]


def _length(ctx: NodeContext, index: int) -> Size:
    sizes = operand_sizes(ctx, index, "length")
    if len(sizes) != 1 or (isinstance(sizes[0], int) and sizes[0] < 0):
        ctx.invalid(f"input {index} is {sizes}", "one length is expected")
    return sizes[0]


_FARTHEST = 1 << 16
"""Buckets of distances are a table made here; max_distance comes from the model, and may be anything."""


def _buckets(ctx: NodeContext, shape: tuple[Size, Size], count: int, farthest: int) -> SSAValue:
    """The bucket of each distance: near ones have their own, far ones share, on a logarithmic scale."""
    b = ctx.b
    if farthest > _FARTHEST:
        ctx.unsupported(f"its max_distance is {farthest}, more than {_FARTHEST}")
    distance = b.subtract(b.iota(shape, 1, "i32"), b.iota(shape, 0, "i32"))
    zero = b.constant(0, "i32")
    both = ctx.flag("is_bidirectional")
    away = b.emit(hlo.AbsOp if both else hlo.NegateOp, distance)
    chosen = take(
        b, b.constant(_bucket_table(count, farthest)), bound_values(b, away, zero, b.constant(farthest, "i32")), 0
    )
    if not both:
        return chosen
    return b.add(chosen, b.select(b.compare(distance, zero, "GT"), b.constant(count, "i32"), zero))


def _bucket_table(count: int, farthest: int) -> Array:
    """The bucket of 0 to `farthest`, where the last begins: in f32, step by step as the operator's kernel counts."""
    exact = count // 2
    away = np.arange(farthest + 1, dtype=np.float32)
    scale = np.log(np.float32(farthest) / np.float32(exact))
    steps = np.log(np.maximum(away, 1) / np.float32(exact)) / scale * np.float32(count - exact)
    far = np.minimum(exact + steps.astype(np.int32), count - 1)
    return np.where(away < exact, away, far).astype(np.int32)


@contrib(
    "GatedRelativePositionBias",
    "query_layer:T[2|3] query_bias:T[1] rel_pos:T[4] weight:T[2] bias:T[1] eco_a:T[4] token_offset:i32[2]?",
    "num_heads!",
)
def gated_relative_position_bias(ctx: NodeContext) -> Results:
    """GatedRelativePositionBias: WavLM's, a position bias times a gate made of each head's query."""
    if ctx.has(6) or ctx.rank() == 2:
        ctx.unsupported("sequences of different lengths are packed into one", fix="export the model with padding")
    b, heads, wide = ctx.b, positive(ctx, "num_heads"), wide_type(ctx.element())
    batch, length, features = ctx.shape()
    size = ctx.divide_size(features, heads, "features")
    query = b.add(b.convert(ctx[0], wide), b.broadcast(b.convert(ctx.vector(1, features), wide), ctx.shape(), (2,)))
    query = b.transpose(b.reshape(query, (batch, length, heads, size)), (0, 2, 1, 3))
    weight = b.convert(ctx.restate(ctx[3], {0: size}), wide)
    width = shape_of(weight)[1]
    gates = b.dot(query, weight, DotDimensions((), (), (3,), (0,)))
    gates = b.add(gates, b.broadcast(b.convert(ctx.vector(4, width), wide), shape_of(gates), (3,)))
    half = ctx.divide_size(width, 2, "columns of the weight")
    summed = b.reduce(hlo.AddOp, b.reshape(gates, (batch, heads, length, 2, half)), [4])
    opened = b.emit(hlo.LogisticOp, summed)
    update, reset = (b.slice_axis(opened, 3, i, i + 1) for i in (0, 1))
    factor = b.convert(ctx.restate(ctx[5], {0: 1, 1: heads, 2: 1, 3: 1}), wide)
    one, two = (b.full((), v, wide) for v in (1, 2))
    gate = b.add(b.multiply(update, b.subtract(b.multiply(reset, factor), one)), two)
    places = b.convert(ctx.restate(ctx[2], {0: 1, 1: heads, 2: length, 3: length}), wide)
    return [b.convert(b.multiply(gate, places), ctx.element())]
