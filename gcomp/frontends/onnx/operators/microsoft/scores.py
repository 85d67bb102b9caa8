"""What the attentions of com.microsoft share: masks, key caches, and how scores become weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size, exact_div
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.operators.attention import attend, by_key_head, mask_by_key_head
from gcomp.frontends.onnx.operators.microsoft.signature import wide_type
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions, ScatterDimensions
from gcomp.ir.composites import composite
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor


@dataclass(frozen=True)
class Keys:
    """Keys and values, (batch, heads, `total`, features), of which `before` each were cached before the node's own."""

    key: SSAValue
    value: SSAValue
    total: Size
    before: Size | SSAValue
    """A size, or the number of cached positions as a rank 0 i32: then positions after the node's own mean nothing."""


# ---- caches ------------------------------------------------------------------------------------------------------


def cache_checked(ctx: NodeContext, past: SSAValue, like: SSAValue) -> SSAValue:
    """A cache whose batch, heads and features are those of `like`, (batch, heads, sequence, features)."""
    batch, heads, _, width = shape_of(like)
    return ctx.restate(past, {0: batch, 1: heads, 3: width})


def append_keys(ctx: NodeContext, past_key: SSAValue, past_value: SSAValue, key: SSAValue, value: SSAValue) -> Keys:
    """New keys and values after cached ones."""
    b = ctx.b
    past_key, past_value = cache_checked(ctx, past_key, key), cache_checked(ctx, past_value, value)
    past_value = ctx.restate(past_value, {2: shape_of(past_key)[2]})
    before = shape_of(past_key)[2]
    joined = b.concatenate([past_key, key], 2), b.concatenate([past_value, value], 2)
    return Keys(*joined, shape_of(joined[0])[2], before)


def write_keys(
    ctx: NodeContext, past_key: SSAValue, past_value: SSAValue, key: SSAValue, value: SSAValue, count: SSAValue
) -> Keys:
    """New keys and values in buffers that hold `count` (one i32) positions before them."""
    past_key, past_value = cache_checked(ctx, past_key, key), cache_checked(ctx, past_value, value)
    total = shape_of(past_key)[2]
    past_value = ctx.restate(past_value, {2: total})
    if not ctx.at_most(shape_of(key)[2], total):
        if ctx.ranges.less_equal(shape_of(key)[2], total) is False:
            ctx.invalid(f"there are {shape_of(key)[2]} new positions", f"the buffers have room for {total}")
        ctx.require("le", shape_of(key)[2], total)
    before = ctx.b.reshape(count, ())
    return Keys(
        place_positions(ctx, past_key, key, before), place_positions(ctx, past_value, value, before), total, before
    )


def place_positions(ctx: NodeContext, buffer: SSAValue, new: SSAValue, start: SSAValue) -> SSAValue:
    """A buffer (batch, heads, positions, features) with new positions from `start`, or from one start in each row."""
    b = ctx.b
    if rank_of(start) == 1 and shape_of(start)[0] == 1:
        start = b.reshape(start, ())
    if not rank_of(start):
        zero = ctx.b.scalar_like(start, 0)
        return b.emit(hlo.DynamicUpdateSliceOp, buffer, new, zero, zero, start, zero)
    scalar = tensor((), element_of(buffer))
    region = b.region([scalar, scalar], lambda args: [args[1]])
    return b.emit(
        hlo.ScatterOp,
        buffer,
        b.reshape(start, (shape_of(start)[0], 1)),
        new,
        regions=(region,),
        scatter_dimension_numbers=ScatterDimensions((1, 2, 3), (), (0,), (0,), (2,), 1),
    )


# ---- masks: f32 (f64 for f64) tensors that are added to the scores, and broadcast to them ------------------------


def key_mask(ctx: NodeContext, index: int, batch: Size, rows: Size, keys: Keys, element: str) -> SSAValue | None:
    """A padding mask (0 hides), or numbers of keys, as `mask_filter_value` where a key is hidden, else 0."""
    b, mask = ctx.b, ctx[index]
    match ctx.rank(index):
        case 1:
            seen = _visible_by_length(ctx, mask, batch, keys.total)
        case 2:
            if shape_of(mask)[1] == 1 and ctx.op_type == "Attention":
                return None  # the same for all keys
            seen = _positive(ctx, fill_mask(ctx, mask, keys), (batch, keys.total))
            seen = b.reshape(seen, (batch, 1, 1, keys.total))
        case 3:
            seen = _positive(ctx, fill_mask(ctx, mask, keys), (batch, rows, keys.total))
            seen = b.reshape(seen, (batch, 1, rows, keys.total))
        case _:
            seen = _positive(ctx, _window(ctx, mask, batch, rows, keys), (batch, 1, rows, keys.total))
    hidden = b.full((), ctx.number("mask_filter_value", -10000.0), element)
    return b.select(seen, b.full((), 0, element), hidden)


def fill_mask(ctx: NodeContext, mask: SSAValue, keys: Keys) -> SSAValue:
    """A mask of the keys that a buffer holds, as one of all its positions: what is added there is hidden anyway."""
    own, rank = shape_of(mask)[-1], rank_of(mask)
    if isinstance(keys.before, Size) or own == keys.total:
        return mask
    if not ctx.at_most(own, keys.total):
        if ctx.ranges.less_equal(own, keys.total) is False:
            ctx.invalid(f"a mask has {own} keys", f"the buffers have room for {keys.total}")
        ctx.require("le", own, keys.total)
    high: list[Size] = [*[0] * (rank - 1), keys.total - own]
    return ctx.b.pad(mask, ctx.b.scalar_like(mask, 0), [0] * rank, high)


def _positive(ctx: NodeContext, mask: SSAValue, shape: tuple[Size, ...]) -> SSAValue:
    mask = ctx.restate(mask, dict(enumerate(shape)))
    return ctx.b.compare(mask, ctx.b.scalar_like(mask, 0), "GT")


def _window(ctx: NodeContext, mask: SSAValue, batch: Size, rows: Size, keys: Keys) -> SSAValue:
    """The part of a mask (batch, 1, longest, longest) that the node's rows and all keys stand in."""
    mask = ctx.restate(mask, {0: batch, 1: 1, 3: shape_of(mask)[2]})
    longest = shape_of(mask)[2]
    if not isinstance(keys.before, Size):
        ctx.unsupported("a mask of all positions with a cache of data-dependent length")
    if not ctx.at_most(keys.total, longest):
        ctx.require("le", keys.total, longest)
    return ctx.b.slice(mask, (0, 0, keys.before, 0), (batch, 1, keys.before + rows, keys.total))


def _visible_by_length(ctx: NodeContext, lengths: SSAValue, batch: Size, total: Size) -> SSAValue:
    """(batch, 1, 1, keys) from ends of keys (batch), ends and starts (2 batch), or ends and offsets (3 batch + 2)."""
    b, size = ctx.b, shape_of(lengths)[0]
    position = b.iota((1, 1, 1, total), 3, "i32")

    def column(start: Size) -> SSAValue:
        return b.reshape(b.slice_axis(lengths, 0, start, start + batch), (batch, 1, 1, 1))

    if size == batch:
        return b.compare(position, column(0), "LT")
    if size == 2 * batch and ctx.op_type == "Attention":
        before = b.compare(position, column(0), "LT")
        return b.emit(hlo.AndOp, *_alike(ctx, before, b.compare(position, column(batch), "GE")))
    if size == 3 * batch + 2:
        return b.compare(position, column(0), "LT")
    lengths = ctx.restate(lengths, {0: batch})
    return b.compare(position, column(0), "LT")


def _alike(ctx: NodeContext, *values: SSAValue) -> list[SSAValue]:
    shape = ctx.b.broadcast_shape(*map(shape_of, values))
    return [ctx.b.broadcast_to(v, shape) for v in values]


def causal(ctx: NodeContext, rows: Size, keys: Keys) -> SSAValue:
    """Whether a row sees a key, (1, 1, rows, keys): those before it and its own.

    The last row of a prompt sees all keys in ONNX Runtime, which matters only where there are more of them.
    """
    b, shape = ctx.b, (1, 1, rows, keys.total)
    row, column = b.iota(shape, 2, "i32"), b.iota(shape, 3, "i32")
    before = b.dim(keys.before, "i32") if isinstance(keys.before, Size) else keys.before
    seen = b.compare(column, b.add(row, before), "LE")
    if isinstance(keys.before, Size) and ctx.ranges.equal(keys.total, keys.before + rows) is not True:
        last = b.compare(row, b.dim(rows - 1, "i32"), "EQ")
        seen = b.emit(hlo.OrOp, seen, last)
    return seen


def written_positions(ctx: NodeContext, rows: Size, keys: Keys) -> SSAValue | None:
    """Whether a position of a buffer holds a key, (1, 1, 1, keys)."""
    if isinstance(keys.before, Size):
        return None
    b = ctx.b
    return b.compare(b.iota((1, 1, 1, keys.total), 3, "i32"), b.add(keys.before, b.dim(rows, "i32")), "LT")


def bias_checked(ctx: NodeContext, index: int, query: SSAValue, keys: Keys) -> SSAValue:
    """An attention bias, (batch or 1, heads or 1, rows, keys), whose dims fit."""
    batch, heads, rows, _ = shape_of(query)
    own = ctx.shape(index)
    sizes: dict[int, Size] = {2: rows, 3: keys.total}
    sizes |= {i: s for i, s in enumerate((batch, heads)) if own[i] != 1}
    return ctx.restate(fill_mask(ctx, ctx[index], keys), sizes)


def join_masks(ctx: NodeContext, element: str, *masks: SSAValue | None) -> SSAValue | None:
    """The sum of masks."""
    total: SSAValue | None = None
    for mask in masks:
        if mask is not None:
            given = ctx.b.convert(mask, element)
            total = given if total is None else ctx.b.add(total, given)
    return total


def hiding(ctx: NodeContext, seen: SSAValue | None, mask: SSAValue | None, element: str) -> SSAValue | None:
    """The mask with the least finite number where a key is not seen, whatever it was there."""
    if seen is None:
        return mask
    b = ctx.b
    lowest = b.full((), np.finfo(np.float64 if element == "f64" else np.float32).min, element)
    return b.select(seen, b.full((), 0, element) if mask is None else mask, lowest)


# ---- scores ------------------------------------------------------------------------------------------------------


def compute_attention(
    ctx: NodeContext, query: SSAValue, key: SSAValue, value: SSAValue, mask: SSAValue | None, scale: float
) -> SSAValue:
    """Attention computed in f32 or wider, in the dtype of the query."""
    text = dtype_text(query.type)
    wide = [ctx.b.convert(v, wide_type(text)) for v in (query, key, value)]
    return ctx.b.convert(attend(ctx, wide[0], wide[1], wide[2], mask, scale), text)


def attend_by_steps(
    ctx: NodeContext,
    query: SSAValue,
    key: SSAValue,
    value: SSAValue,
    mask: SSAValue | None,
    *,
    scale: float,
    cap: float = 0.0,
    sink: SSAValue | None = None,
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Attention, the scores before the softmax, and the weights after it; both (batch, heads, rows, keys), wide.

    `cap` bounds scores before the mask by tanh; a `sink` (heads) is one more score that takes a share of the weights.
    """
    b, text = ctx.b, dtype_text(query.type)
    batch, heads, rows, _ = shape_of(query)
    groups = exact_div(heads, shape_of(key)[1])
    groups = ctx.static(groups if groups is not None else 0, "number of heads that share a key")
    query, key, value = (b.convert(v, wide_type(text)) for v in (query, key, value))
    products = b.dot(by_key_head(ctx, query, groups), key, DotDimensions((0, 1), (0, 1), (3,), (3,)))
    scores = b.scale(products, scale)
    if cap:
        scores = b.scale(b.emit(hlo.TanhOp, b.scale(scores, 1 / cap)), cap)
    if mask is not None:
        scores = b.add(scores, mask_by_key_head(ctx, mask, groups, heads, rows))
    weights = _weights(ctx, scores, None if sink is None else _sink(ctx, sink, groups, heads, rows))
    y = b.dot(weights, value, DotDimensions((0, 1), (0, 1), (3,), (2,)))
    full = (batch, heads, rows, shape_of(key)[2])
    result = b.reshape(b.convert(y, text), (batch, heads, rows, shape_of(value)[3]))
    return result, b.reshape(scores, full), b.reshape(weights, full)


def _sink(ctx: NodeContext, sink: SSAValue, groups: int, heads: Size, rows: Size) -> SSAValue:
    spread = ctx.b.reshape(sink, (1, heads, 1, 1))
    return mask_by_key_head(ctx, spread, groups, heads, rows)


def _weights(ctx: NodeContext, scores: SSAValue, sink: SSAValue | None) -> SSAValue:
    b = ctx.b
    if sink is None:
        return composite(b, "gcomp.softmax", [scores], {"axis": 3})[0]
    sink = b.convert(sink, element_of(scores))
    most = b.maximum(b.reduce(hlo.MaximumOp, scores, [3], keepdims=True), sink)
    exponential = b.emit(hlo.ExponentialOp, b.subtract(scores, most))
    rest = b.emit(hlo.ExponentialOp, b.subtract(b.broadcast_to(sink, shape_of(most)), most))
    return b.divide(exponential, b.add(b.reduce(hlo.AddOp, exponential, [3], keepdims=True), rest))
