"""Pooling of regions of interest."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.vision import clamp_place, over_channels, sample_places, size_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, lowest
from gcomp.ir.gathering import take
from gcomp.ir.types import dtype_text, element_of, shape_of

Bins = tuple[int, int]


def _quotient(b: Builder, x: SSAValue, by: int) -> SSAValue:
    """x / by, rounded as division is. By way of f64: XLA divides by a constant by multiplying with its inverse, and
    how many samples or elements a bin has jumps where that is off by an ulp."""
    if dtype_text(x.type) != "f32":
        return b.divide(x, b.scalar_like(x, by))
    wide = b.convert(x, "f64")
    return b.convert(b.divide(wide, b.scalar_like(wide, by)), "f32")


def _column(b: Builder, rois: SSAValue, index: int) -> SSAValue:
    return b.reshape(b.slice_axis(rois, 1, index, index + 1), (shape_of(rois)[0],))


def _check_rois(ctx: NodeContext, columns: int) -> None:
    if ctx.rank() != 4 or ctx.rank(1) != 2 or ctx.ranges.equal(ctx.shape(1)[1], columns) is False:
        ctx.invalid(
            f"X has rank {ctx.rank()} and the regions the shape {ctx.shape(1)}",
            f"(N, C, H, W) and (regions, {columns}) are expected",
        )


# ---- maxima ------------------------------------------------------------------------------------------------------


@imports("MaxRoiPool")
def max_roi_pool(ctx: NodeContext) -> Results:
    """MaxRoiPool: each region in bins of whole elements, each bin its maximum; an empty bin is 0.

    ONNX's text says no more than that. Bounds are as in Caffe, where the operator is from, and in ONNX Runtime: corners
    round to the nearest element and belong to the region, which has one element at least; bins overlap where their
    edges lie inside an element.
    """
    b, x = ctx.b, ctx[0]
    _check_rois(ctx, 5)
    pooled = ctx.integers("pooled_shape") or []
    if len(pooled) != 2 or min(pooled) < 1:
        ctx.invalid(f"pooled_shape is {pooled}", "two positive sizes are expected")
    rois = b.widen(ctx.restate(ctx[1], {1: 5}))
    corners = b.emit(hlo.RoundNearestAfzOp, b.scale(b.slice_axis(rois, 1, 1, 5), ctx.number("spatial_scale", 1.0)))
    rows, tall = _members(b, _column(b, corners, 1), _column(b, corners, 3), pooled[0], shape_of(x)[2])
    columns, broad = _members(b, _column(b, corners, 0), _column(b, corners, 2), pooled[1], shape_of(x)[3])
    images = take(b, x, b.convert(_column(b, rois, 0), "i64"), 0)
    best = _maximum_of_members(b, _maximum_of_members(b, images, columns, 3), rows, 2)
    some = b.emit(hlo.AndOp, _spread(b, tall, best, 2), _spread(b, broad, best, 3))
    return [b.select(some, best, ctx.b.scalar_like(x, 0))]


def _members(b: Builder, low: SSAValue, high: SSAValue, bins: int, size: Size) -> tuple[SSAValue, SSAValue]:
    """Which elements of a dim lie in each bin (regions, bins, size), and whether any do (regions, bins)."""
    count = shape_of(low)[0]
    length = b.maximum(b.add(b.subtract(high, low), b.scalar_like(low, 1)), b.scalar_like(low, 1))
    step = b.broadcast(_quotient(b, length, bins), (count, bins), (0,))
    index = b.iota((count, bins), 1, dtype_text(low.type))
    start = b.broadcast(low, (count, bins), (0,))
    limit, zero = size_of(b, low, size), b.scalar_like(low, 0)

    def edge(x: SSAValue) -> SSAValue:
        return b.minimum(b.maximum(b.add(x, start), zero), limit)

    first = edge(b.emit(hlo.FloorOp, b.multiply(index, step)))
    last = edge(b.emit(hlo.CeilOp, b.multiply(b.add(index, b.scalar_like(index, 1)), step)))
    shape = (count, bins, size)
    place = b.iota(shape, 2, dtype_text(low.type))
    after = b.compare(place, b.broadcast(first, shape, (0, 1)), "GE")
    before = b.compare(place, b.broadcast(last, shape, (0, 1)), "LT")
    return b.emit(hlo.AndOp, after, before), b.compare(first, last, "LT")


def _maximum_of_members(b: Builder, x: SSAValue, members: SSAValue, axis: int) -> SSAValue:
    """The maximum over each bin's members along an axis, which becomes the axis of the bins."""
    bins = shape_of(members)[1]
    shape = (*shape_of(x)[:axis], bins, *shape_of(x)[axis:])
    wide = b.broadcast(x, shape, [i for i in range(len(shape)) if i != axis])
    least = b.scalar_like(x, lowest(dtype_text(x.type)))
    return b.reduce(hlo.MaximumOp, b.select(b.broadcast(members, shape, (0, axis, axis + 1)), wide, least), [axis + 1])


def _spread(b: Builder, mask: SSAValue, like: SSAValue, axis: int) -> SSAValue:
    return b.broadcast(mask, shape_of(like), (0, axis))


# ---- samples -----------------------------------------------------------------------------------------------------


@imports("RoiAlign", since=10)
def roi_align(ctx: NodeContext) -> Results:
    """RoiAlign: each region in bins, each bin the mean or maximum of bilinear samples at even distances.

    With `sampling_ratio` 0 a region has as many samples as its bins are wide: a loop takes one of each bin at a time.
    """
    _check_rois(ctx, 4)
    b, x = ctx.b, ctx.b.widen(ctx[0])
    bins = (ctx.integer("output_height", 1), ctx.integer("output_width", 1))
    ratio, mode = ctx.integer("sampling_ratio"), ctx.string("mode", "avg")
    if min(bins) < 1 or ratio < 0 or mode not in ("avg", "max"):
        ctx.invalid(
            f"it has {bins} bins, the sampling_ratio {ratio} and the mode {mode!r}",
            "positive sizes, a ratio from 0 on, and avg or max are expected",
        )
    half = _half_pixel(ctx)
    rois = b.scale(b.convert(ctx.restate(ctx[1], {1: 4}), element_of(x)), ctx.number("spatial_scale", 1.0))
    if half:
        rois = b.subtract(rois, b.scalar_like(rois, 0.5))
    count = shape_of(rois)[0]
    images = take(b, x, b.convert(ctx.vector(2, count), "i64"), 0)
    lows, spans = [_column(b, rois, i) for i in (1, 0)], [_span(b, rois, i, half) for i in (1, 0)]
    steps = [_quotient(b, span, n) for span, n in zip(spans, bins, strict=True)]
    pooled = (_pool if ratio else _pool_adaptively)(ctx, images, lows, steps, bins)
    return [b.convert(pooled, ctx.element())]


def _half_pixel(ctx: NodeContext) -> bool:
    modes = {"half_pixel": True, "output_half_pixel": False}
    mode = ctx.string("coordinate_transformation_mode", "half_pixel" if ctx.opset >= 16 else "output_half_pixel")
    if mode not in modes:
        ctx.invalid(f"coordinate_transformation_mode is {mode!r}", f"it must be one of {', '.join(modes)}")
    return modes[mode]


def _span(b: Builder, rois: SSAValue, index: int, half: bool) -> SSAValue:
    """How long each region is along a dim."""
    span = b.subtract(_column(b, rois, index + 2), _column(b, rois, index))
    return span if half else b.maximum(span, b.scalar_like(span, 1))


def _places(b: Builder, low: SSAValue, step: SSAValue, at: SSAValue) -> SSAValue:
    """Where samples lie along a dim: `at` (regions, n), counted in bins, in elements."""
    shape = shape_of(at)
    return b.add(b.multiply(at, b.broadcast(step, shape, (0,))), b.broadcast(low, shape, (0,)))


def _pool(
    ctx: NodeContext, images: SSAValue, lows: Sequence[SSAValue], steps: Sequence[SSAValue], bins: Bins
) -> SSAValue:
    """Each bin's mean or maximum of sampling_ratio x sampling_ratio samples: (regions, C, height, width)."""
    b, ratio, element = ctx.b, ctx.integer("sampling_ratio"), dtype_text(images.type)
    count, channels = shape_of(images)[:2]
    lines: list[SSAValue] = []
    for low, step, n in zip(lows, steps, bins, strict=True):
        at = (np.arange(n * ratio) + 0.5) / ratio
        shape = (count, n * ratio)
        lines.append(_places(b, low, step, b.broadcast(b.constant(at, element), shape, (1,))))
    samples = b.reshape(_sample(ctx, images, *lines), (count, channels, bins[0], ratio, bins[1], ratio))
    if ctx.string("mode", "avg") == "max":
        return b.reduce(hlo.MaximumOp, samples, [3, 5])
    return b.scale(b.reduce(hlo.AddOp, samples, [3, 5]), 1 / (ratio * ratio))


def _pool_adaptively(
    ctx: NodeContext, images: SSAValue, lows: Sequence[SSAValue], steps: Sequence[SSAValue], bins: Bins
) -> SSAValue:
    """The same with ceil(step) samples along each dim, which depends on the region."""
    b, averaged = ctx.b, ctx.string("mode", "avg") == "avg"
    counts = [b.maximum(b.emit(hlo.CeilOp, s), b.scalar_like(s, 0)) for s in steps]
    most = [b.convert(b.reduce(hlo.MaximumOp, c, [0]), "i64") for c in counts]
    shape = (*shape_of(images)[:2], *bins)
    start = b.scalar_like(images, 0 if averaged else lowest(dtype_text(images.type)))
    zero, one = b.constant(0, "i64"), b.constant(1, "i64")
    trips = b.multiply(b.maximum(most[0], zero), b.maximum(most[1], zero))

    def body(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        iteration, total = args
        indices = [b.divide(iteration, most[1]), b.binary(hlo.RemainderOp, iteration, most[1])]
        numbers = [b.convert(i, element_of(images)) for i in indices]
        row, column = (_turn(b, *line) for line in zip(lows, steps, bins, counts, numbers, strict=True))
        taken = [b.compare(i, c, "LT") for i, c in zip(numbers, counts, strict=True)]
        mine = b.broadcast(b.emit(hlo.AndOp, *taken), shape, (0,))
        after = _combiner(ctx)(total, _sample(ctx, images, row, column))
        return [b.add(iteration, one), b.select(mine, after, total)]

    carried = [zero, b.broadcast(start, shape, ())]
    types = [v.type for v in carried]
    regions = (b.region(types, lambda args: [b.compare(args[0], trips, "LT")]), b.region(types, body))
    total = b.emit_all(hlo.WhileOp, *carried, regions=regions)[1]
    samples = b.broadcast(b.multiply(*counts), shape, (0,))
    if averaged:
        return b.divide(total, b.maximum(samples, b.scalar_like(samples, 1)))
    return b.select(b.compare(samples, b.scalar_like(samples, 0), "GT"), total, b.scalar_like(total, 0))


def _turn(b: Builder, low: SSAValue, step: SSAValue, bins: int, parts: SSAValue, index: SSAValue) -> SSAValue:
    """Where sample `index` (rank 0) of `parts` (regions,) lies in each bin: (regions, bins)."""
    shape = (shape_of(low)[0], bins)
    at = b.broadcast(b.divide(b.add(index, b.scalar_like(index, 0.5)), parts), shape, (0,))
    return _places(b, low, step, b.add(b.iota(shape, 1, dtype_text(low.type)), at))


def _combiner(ctx: NodeContext) -> Callable[[SSAValue, SSAValue], SSAValue]:
    return ctx.b.add if ctx.string("mode", "avg") == "avg" else ctx.b.maximum


def _sample(ctx: NodeContext, images: SSAValue, row: SSAValue, column: SSAValue) -> SSAValue:
    """One sample of each bin, (regions, C, height, width): bilinear; zero where it is more than an element outside."""
    b, x = ctx.b, images
    count, height, width = shape_of(x)[0], shape_of(row)[1], shape_of(column)[1]
    points = (count, height, width)
    outside = b.full(points, False, "i1")
    taps: list[list[tuple[SSAValue, SSAValue]]] = []
    for line, size, axis in ((row, shape_of(x)[2], 1), (column, shape_of(x)[3], 2)):
        place = b.broadcast(line, points, (0, axis))
        low, high = b.compare(place, b.scalar_like(place, -1), "LT"), b.compare(place, size_of(b, place, size), "GT")
        outside = b.emit(hlo.OrOp, outside, b.emit(hlo.OrOp, low, high))
        inside = clamp_place(b, place, size)
        base = b.emit(hlo.FloorOp, inside)
        t = b.subtract(inside, base)
        after = clamp_place(b, b.add(base, b.scalar_like(base, 1)), size)
        taps.append([(base, b.subtract(b.scalar_like(t, 1), t)), (after, t)])
    total: SSAValue | None = None
    for (up, weight), (left, other) in itertools.product(*taps):
        value = sample_places(b, x, [b.convert(up, "i64"), b.convert(left, "i64")])
        weighted = b.multiply(value, over_channels(b, b.multiply(weight, other), value))
        # ONNX's maximum is over the weighted neighbours, not over their sums.
        total = weighted if total is None else _combiner(ctx)(total, weighted)
    total = cast(SSAValue, total)
    return b.select(over_channels(b, outside, total), b.scalar_like(total, 0), total)
