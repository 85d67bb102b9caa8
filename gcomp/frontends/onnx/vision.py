"""Sampling of images at real positions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.types import element_of, rank_of, shape_of

_CUBIC = -0.75


def sampled(b: Builder, x: SSAValue, places: Sequence[SSAValue]) -> SSAValue:
    """Elements of `x` (N, C, spatial...) at integer places (N, points...) for each spatial dim: (N, C, points...)."""
    points = shape_of(places[0])
    count, spatial = len(points), rank_of(x) - 2
    vectors = b.concatenate([b.reshape(p, (*points, 1)) for p in places], count)
    dimensions = GatherDimensions(
        offset_dims=(1,),
        collapsed_slice_dims=tuple(range(2, 2 + spatial)),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
        start_index_map=tuple(range(2, 2 + spatial)),
        index_vector_dim=count,
    )
    sizes: list[Size] = [1, shape_of(x)[1], *[1] * spatial]
    return b.emit(hlo.GatherOp, x, vectors, dimension_numbers=dimensions, slice_sizes=sizes)


def _number(b: Builder, x: SSAValue, value: float) -> SSAValue:
    return b.full((), value, element_of(x))


def _size(b: Builder, x: SSAValue, size: Size) -> SSAValue:
    """A size as a number of the element type of `x`."""
    return b.convert(b.dim(size), element_of(x))


@imports("GridSample", since=16)
def grid_sample(ctx: NodeContext) -> Results:
    """GridSample: any number of spatial dims; the grid names the last dim first."""
    b, x = ctx.b, ctx[0]
    rank = ctx.rank()
    if rank < 3 or ctx.rank(1) != rank:
        ctx.invalid(f"X has rank {rank} and the grid {ctx.rank(1)}", "they must have one rank, 3 or more")
    grid = ctx.restated(b.convert(ctx[1], element_of(x)), {0: ctx.shape()[0], rank - 1: rank - 2})
    spatial = ctx.shape()[2:]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(ctx.string("mode", "linear"), ctx.string("mode", "linear"))
    padding = ctx.string("padding_mode", "zeros")
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        ctx.invalid(f"the mode is {mode!r} and the padding {padding!r}", "they must be ones that ONNX names")
    corners = ctx.flag("align_corners")
    positions = [_denormalized(b, grid, i, size, corners) for i, size in enumerate(spatial)]
    if mode == "nearest":
        nearest = [b.emit(hlo.RoundNearestEvenOp, p) for p in positions]
        return [_pixel(b, x, nearest, padding, corners)]
    if padding == "border" and mode == "linear":
        positions = [_clamped(b, p, s) for p, s in zip(positions, spatial, strict=True)]
    if padding == "reflection" and mode == "linear":
        positions = [_reflected(b, p, s, corners) for p, s in zip(positions, spatial, strict=True)]
    taps = [_taps(b, p, mode) for p in positions]
    total: SSAValue | None = None
    for combination in itertools.product(*taps):
        value = _pixel(b, x, [place for place, _ in combination], padding, corners)
        for _, weight in combination:
            value = b.multiply(value, _over_channels(b, weight, value))
        total = value if total is None else b.add(total, value)
    return [cast(SSAValue, total)]


def _over_channels(b: Builder, weight: SSAValue, like: SSAValue) -> SSAValue:
    """(N, points...) in the shape (N, C, points...)."""
    return b.broadcast(weight, shape_of(like), (0, *range(2, rank_of(like))))


def _denormalized(b: Builder, grid: SSAValue, dim: int, size: Size, corners: bool) -> SSAValue:
    """The real position along a spatial dim, from -1..1."""
    rank = rank_of(grid)
    column = rank_of(grid) - 1
    index = cast(int, shape_of(grid)[column]) - 1 - dim
    n = b.reshape(b.slice_axis(grid, column, index, index + 1), shape_of(grid)[: rank - 1])
    moved, length = b.add(n, _number(b, n, 1)), _size(b, n, size)
    if corners:
        return b.multiply(b.scaled(moved, 0.5), b.subtract(length, _number(b, n, 1)))
    return b.scaled(b.subtract(b.multiply(moved, length), _number(b, n, 1)), 0.5)


def _taps(b: Builder, position: SSAValue, mode: str) -> list[tuple[SSAValue, SSAValue]]:
    """The places around a position, and their weights."""
    base = b.emit(hlo.FloorOp, position)
    t = b.subtract(position, base)
    one = _number(b, t, 1)
    if mode == "linear":
        return [(base, b.subtract(one, t)), (b.add(base, one), t)]
    distances = [b.add(t, one), t, b.subtract(one, t), b.subtract(_number(b, t, 2), t)]
    weights = [_far(b, distances[0]), _near(b, distances[1]), _near(b, distances[2]), _far(b, distances[3])]
    return [(b.add(base, _number(b, t, offset)), w) for offset, w in zip((-1, 0, 1, 2), weights, strict=True)]


def _polynomial(b: Builder, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
    """Horner's scheme, the highest power first."""
    total = _number(b, x, coefficients[0])
    for c in coefficients[1:]:
        total = b.add(b.multiply(total, x), _number(b, x, c))
    return total


def _near(b: Builder, x: SSAValue) -> SSAValue:
    return _polynomial(b, x, (_CUBIC + 2, -(_CUBIC + 3), 0.0, 1.0))


def _far(b: Builder, x: SSAValue) -> SSAValue:
    return _polynomial(b, x, (_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC))


def _clamped(b: Builder, place: SSAValue, size: Size) -> SSAValue:
    last = b.subtract(_size(b, place, size), _number(b, place, 1))
    return b.minimum(b.maximum(place, _number(b, place, 0)), last)


def _reflected(b: Builder, place: SSAValue, size: Size, corners: bool) -> SSAValue:
    """A place mirrored at the borders until it lies inside."""
    length = _size(b, place, size)
    low = _number(b, place, 0.0 if corners else -0.5)
    high = b.subtract(length, _number(b, place, 1.0 if corners else 0.5))
    span = b.subtract(high, low)
    distance = b.emit(hlo.AbsOp, b.subtract(place, low))
    turns = b.emit(hlo.FloorOp, b.divide(distance, span))
    rest = b.subtract(distance, b.multiply(turns, span))
    odd = b.compare(b.binary(hlo.RemainderOp, turns, _number(b, place, 2)), _number(b, place, 0), "NE")
    mirrored = b.add(b.select(odd, b.subtract(span, rest), rest), low)
    single = b.compare(span, _number(b, place, 0), "LE")
    return _clamped(b, b.select(single, low, mirrored), size)


def _pixel(b: Builder, x: SSAValue, places: Sequence[SSAValue], padding: str, corners: bool) -> SSAValue:
    """`x` at integer places given as floats, those outside by the padding mode."""
    spatial = shape_of(x)[2:]
    if padding == "reflection":
        places = [_reflected(b, p, s, corners) for p, s in zip(places, spatial, strict=True)]
    inside = [_clamped(b, p, s) for p, s in zip(places, spatial, strict=True)]
    value = sampled(b, x, [b.convert(p, "i64") for p in inside])
    if padding != "zeros":
        return value
    keep: SSAValue | None = None
    for place, clamped in zip(places, inside, strict=True):
        same = b.compare(place, clamped, "EQ")
        keep = same if keep is None else b.emit(hlo.AndOp, keep, same)
    return b.select(_over_channels(b, cast(SSAValue, keep), value), value, _number(b, value, 0))


# ---- regions of interest -----------------------------------------------------------------------------------------


@imports("RoiAlign", since=10)
def roi_align(ctx: NodeContext) -> Results:
    """RoiAlign: each region in bins, each bin the mean or maximum of a fixed number of bilinear samples."""
    b, x = ctx.b, ctx[0]
    height, width = ctx.integer("output_height", 1), ctx.integer("output_width", 1)
    ratio = ctx.integer("sampling_ratio")
    if ratio < 1:
        ctx.unsupported("with sampling_ratio 0 the number of samples depends on the data", fix="set sampling_ratio")
    default = "half_pixel" if ctx.opset >= 16 else "output_half_pixel"
    half = ctx.string("coordinate_transformation_mode", default) == "half_pixel"
    rois = b.scaled(ctx[1], ctx.number("spatial_scale", 1.0))
    if half:
        rois = b.subtract(rois, _number(b, rois, 0.5))
    count = ctx.shape(1)[0]
    edges = [b.reshape(b.slice_axis(rois, 1, i, i + 1), (count,)) for i in range(4)]
    y = _bins(ctx, edges[1], edges[3], height, ratio, half)
    z = _bins(ctx, edges[0], edges[2], width, ratio, half)
    points = (count, height * ratio, width * ratio)
    rows, columns = b.broadcast(y, points, (0, 1)), b.broadcast(z, points, (0, 2))
    batches = b.convert(b.reshape(ctx[2], (count,)), "i64")
    return [_pooled(ctx, _bilinear(ctx, _chosen(b, x, batches), rows, columns), height, width, ratio)]


def _chosen(b: Builder, x: SSAValue, batches: SSAValue) -> SSAValue:
    """The image of each region."""
    from gcomp.frontends.onnx.indexing import take

    return take(b, x, batches, 0)


def _bins(ctx: NodeContext, low: SSAValue, high: SSAValue, bins: int, ratio: int, half: bool) -> SSAValue:
    """Where the samples of each region lie along one dim: (regions, bins * ratio)."""
    b = ctx.b
    span = b.subtract(high, low)
    if not half:
        span = b.maximum(span, _number(b, span, 1))
    step = b.scaled(span, 1 / bins)
    shape = (shape_of(low)[0], bins * ratio)
    index = b.iota(shape, 1, ctx.element())
    at = b.scaled(b.add(index, _number(b, index, 0.5)), 1 / ratio)
    return b.add(b.multiply(at, b.broadcast(step, shape, (0,))), b.broadcast(low, shape, (0,)))


def _bilinear(ctx: NodeContext, x: SSAValue, rows: SSAValue, columns: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The four neighbours' weighted values at each sample, stacked first, and which samples are outside."""
    b = ctx.b
    outside = b.full(shape_of(rows), False, "i1")
    taps: list[list[tuple[SSAValue, SSAValue]]] = []
    for place, size in ((rows, shape_of(x)[2]), (columns, shape_of(x)[3])):
        length = _size(b, place, size)
        low, high = b.compare(place, _number(b, place, -1), "LT"), b.compare(place, length, "GT")
        outside = b.emit(hlo.OrOp, outside, b.emit(hlo.OrOp, low, high))
        inside = _clamped(b, place, size)
        base = b.emit(hlo.FloorOp, inside)
        t = b.subtract(inside, base)
        after = _clamped(b, b.add(base, _number(b, base, 1)), size)
        taps.append([(base, b.subtract(_number(b, t, 1), t)), (after, t)])
    parts: list[SSAValue] = []
    for (row, weight), (column, other) in itertools.product(*taps):
        value = sampled(b, x, [b.convert(row, "i64"), b.convert(column, "i64")])
        weighted = b.multiply(value, _over_channels(b, b.multiply(weight, other), value))
        parts.append(b.reshape(weighted, (1, *shape_of(weighted))))
    return b.concatenate(parts, 0), outside


def _pooled(ctx: NodeContext, samples: tuple[SSAValue, SSAValue], height: int, width: int, ratio: int) -> SSAValue:
    b, (parts, outside) = ctx.b, samples
    mask = b.broadcast(outside, shape_of(parts), (1, 3, 4))
    parts = b.select(mask, _number(b, parts, 0), parts)
    count, channels = shape_of(parts)[1:3]
    binned = (4, count, channels, height, ratio, width, ratio)
    if ctx.string("mode", "avg") == "avg":
        total = b.reduce(hlo.AddOp, b.reshape(parts, binned), [0, 4, 6])
        return b.scaled(total, 1 / (ratio * ratio))
    # ONNX's maximum is over the weighted neighbours, not over their sums.
    return b.reduce(hlo.MaximumOp, b.reshape(parts, binned), [0, 4, 6])
