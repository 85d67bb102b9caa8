"""Padding: with a constant, or with elements of the input's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_axes import mask_axes, or_refused
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes, known_sizes, operand_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import rank_of, shape_of


@imports("Pad", since=2)
def pad_attributes(ctx: NodeContext) -> Results:
    """Pad-2: pads and value are attributes."""
    pads = cast("list[Size]", ctx.integers("pads") or [])
    return [pad_input(ctx, pads, list(range(ctx.rank())), ctx.b.scalar_like(ctx[0], ctx.number("value")))]


@imports("Pad", since=11)
def pad(ctx: NodeContext) -> Results:
    """Pad-11: pads and value are inputs; from opset 18 on for some axes only."""
    if ctx.rank(1) != 1:
        ctx.invalid(f"its pads have rank {ctx.rank(1)}", "a list is expected")
    value, everywhere = ctx.get(2), list(range(ctx.rank()))
    fill = ctx.b.scalar_like(ctx[0], 0) if value is None else ctx.b.reshape(value, ())
    if ctx.has(3) and ctx.known_value(3) is None:
        return [pad_input(ctx, _data_dependent_pads(ctx, *_of_all_axes(ctx)), everywhere, fill)]
    axes = ctx.axes("axes", 3, ctx.rank())
    pads = operand_sizes(ctx, 1, "pads") if ctx.known_value(1) is not None else _data_dependent_pads(ctx, ctx[1])
    return [pad_input(ctx, pads, everywhere if axes is None else axes, fill)]


def _data_dependent_pads(ctx: NodeContext, pads: SSAValue, valid: SSAValue | None = None) -> list[Size]:
    """Pads that depend on data; each is the difference of two data-dependent sizes, since it may be negative."""
    b = ctx.b
    ctx.static(shape_of(pads)[0], "number of pads")
    known = known_sizes(ctx, pads)
    if all(size is not None for size in known):
        return cast("list[Size]", known)
    pads, zero = b.convert(pads, "i64"), b.constant(0, "i64")
    both = b.concatenate([b.maximum(pads, zero), b.maximum(b.subtract(zero, pads), zero)], 0)
    both = both if valid is None else or_refused(ctx, valid, both)
    sizes, count = data_dependent_sizes(ctx, both, "pads and crops"), len(known)
    read = [grown - cropped for grown, cropped in zip(sizes[:count], sizes[count:], strict=True)]
    return [other if size is None else size for size, other in zip(known, read, strict=True)]


def _of_all_axes(ctx: NodeContext) -> tuple[SSAValue, SSAValue]:
    """The pads of every axis, where data tell the axes: all starts, then all ends; and whether there are such axes."""
    b, rank = ctx.b, ctx.rank()
    hit, valid = mask_axes(ctx, 3, rank)
    count = shape_of(hit)[1]
    if ctx.ranges.equal(ctx.shape(1)[0], 2 * count) is not True:
        ctx.invalid(f"it has {ctx.shape(1)[0]} pads", f"{2 * count} are expected")
    shape = (2, rank, count)
    pads = b.broadcast(b.convert(b.reshape(ctx[1], (2, count)), "i64"), shape, (0, 2))
    spread = b.reduce(hlo.AddOp, b.select(b.broadcast(hit, shape, (1, 2)), pads, b.constant(0, "i64")), [2])
    return b.reshape(spread, (2 * rank,)), valid


def pad_input(ctx: NodeContext, pads: Sequence[Size], axes: Sequence[int], fill: SSAValue) -> SSAValue:
    """The input padded at `axes`: pads are all starts, then all ends; negative ones crop."""
    b, x, mode = ctx.b, ctx[0], ctx.string("mode", "constant")
    if len(pads) != 2 * len(axes):
        ctx.invalid(f"it has {len(pads)} pads", f"{2 * len(axes)} are expected")
    low: list[Size] = [0] * rank_of(x)
    high = list(low)
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[i + len(axes)]
    if mode == "constant":
        for size in (s + first + last for s, first, last in zip(shape_of(x), low, high, strict=True)):
            if isinstance(size, Dim) and not ctx.at_most(0, size):
                ctx.require("le", 0, size)
        return b.pad(x, fill, low, high)
    if mode not in _EDGES:
        ctx.invalid(f"the mode is {mode!r}", f"it must be constant or one of {', '.join(_EDGES)}")
    for axis in range(rank_of(x)):
        before, after = low[axis], high[axis]
        if isinstance(before, Dim) or isinstance(after, Dim):
            x = _extend_symbolically(ctx, x, axis, before, after, mode)
            continue
        x = b.slice_axis(x, axis, max(-before, 0), shape_of(x)[axis] - max(-after, 0))
        x = _extend(ctx, x, axis, max(before, 0), max(after, 0), mode)
    return x


_EDGES = ("reflect", "edge", "wrap")


def _extend(ctx: NodeContext, x: SSAValue, axis: int, before: int, after: int, mode: str) -> SSAValue:
    """`x` with elements of its own put before and after it along an axis."""
    b = ctx.b
    while before or after:
        size = shape_of(x)[axis]
        reach = size - (mode == "reflect") if isinstance(size, int) else max(before, after)
        if mode != "edge" and reach <= 0:
            if isinstance(size, int) and size == 1 and mode == "reflect":
                return _extend(ctx, x, axis, before, after, "edge")
            ctx.invalid(f"axis {axis} has size {size}", f"there is nothing to {mode}")
        if isinstance(size, Dim) and mode != "edge":
            ctx.require("le", reach + (mode == "reflect"), size)
        lo, hi = (before, after) if mode == "edge" else (min(before, reach), min(after, reach))
        parts = [_before(ctx, x, axis, lo, mode)] if lo else []
        parts += [x, *([_after(ctx, x, axis, hi, mode)] if hi else [])]
        x = b.concatenate(parts, axis)
        before, after = before - lo, after - hi
    return x


def _before(ctx: NodeContext, x: SSAValue, axis: int, count: int, mode: str) -> SSAValue:
    b, size = ctx.b, shape_of(x)[axis]
    if mode == "edge":
        return _repeat(ctx, b.slice_axis(x, axis, 0, 1), axis, count)
    if mode == "reflect":
        return b.emit(hlo.ReverseOp, b.slice_axis(x, axis, 1, count + 1), dimensions=[axis])
    return b.slice_axis(x, axis, size - count, size)


def _after(ctx: NodeContext, x: SSAValue, axis: int, count: int, mode: str) -> SSAValue:
    b, size = ctx.b, shape_of(x)[axis]
    if mode == "edge":
        return _repeat(ctx, b.slice_axis(x, axis, size - 1, size), axis, count)
    if mode == "reflect":
        return b.emit(hlo.ReverseOp, b.slice_axis(x, axis, size - 1 - count, size - 1), dimensions=[axis])
    return b.slice_axis(x, axis, 0, count)


def _repeat(ctx: NodeContext, x: SSAValue, axis: int, count: int) -> SSAValue:
    shape = list(shape_of(x))
    shape[axis] = count
    return ctx.b.broadcast(x, shape, range(len(shape)))


def _extend_symbolically(ctx: NodeContext, x: SSAValue, axis: int, before: Size, after: Size, mode: str) -> SSAValue:
    """The same where a pad is symbolic: a gather of the positions that the result repeats."""
    b = ctx.b
    kept_from, kept_to = ctx.greater(-1 * before, 0), shape_of(x)[axis] - ctx.greater(-1 * after, 0)
    if not ctx.at_most(kept_from, kept_to):
        ctx.require("le", kept_from, kept_to)
    x = b.slice_axis(x, axis, kept_from, kept_to)
    size = shape_of(x)[axis]
    before, after = ctx.greater(before, 0), ctx.greater(after, 0)
    zero, one, length = b.constant(0, "i64"), b.constant(1, "i64"), b.dim(size)
    last = b.subtract(length, one)
    place = b.subtract(b.iota((size + before + after,), 0), b.dim(before))
    if mode == "edge":
        return take(b, x, b.minimum(b.maximum(place, zero), last), axis)
    # Reflections repeat after there and back; of one element there is nothing to turn at.
    period = b.maximum(b.add(last, last), one) if mode == "reflect" else length
    rest = b.binary(hlo.RemainderOp, place, period)
    rest = b.select(b.compare(rest, zero, "LT"), b.add(rest, period), rest)
    if mode == "reflect":
        rest = b.minimum(rest, b.subtract(period, rest))
        rest = b.minimum(rest, last)
    return take(b, x, rest, axis)
