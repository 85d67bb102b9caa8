"""Sampling of images at real positions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.ir import Attribute, SSAValue

from gcomp.dims import Size, product
from gcomp.dtypes import is_complex, is_float
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.convolution import add_bias, groups, kernel_sizes
from gcomp.frontends.onnx.operators.elementwise import convert_value
from gcomp.frontends.onnx.operators.windows import Windows
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions, GatherDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of

_CUBIC = -0.75


def sample_places(b: Builder, x: SSAValue, places: Sequence[SSAValue]) -> SSAValue:
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


def size_of(b: Builder, x: SSAValue, size: Size) -> SSAValue:
    """A size as a number of the element type of `x`."""
    return b.convert(b.dim(size), element_of(x))


@imports("GridSample", since=16)
def grid_sample(ctx: NodeContext) -> Results:
    """GridSample: any number of spatial dims; the grid names the last dim first."""
    b, x = ctx.b, ctx[0]
    rank = ctx.rank()
    if rank < 3 or ctx.rank(1) != rank:
        ctx.invalid(f"X has rank {rank} and the grid {ctx.rank(1)}", "they must have one rank, 3 or more")
    computed = "f64" if "f64" in (ctx.element(), ctx.element(1)) or not is_float(ctx.element()) else "f32"
    grid = ctx.restate(b.convert(ctx[1], computed), {0: ctx.shape()[0], rank - 1: rank - 2})
    spatial = ctx.shape()[2:]
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(ctx.string("mode", "linear"), ctx.string("mode", "linear"))
    padding = ctx.string("padding_mode", "zeros")
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        ctx.invalid(f"the mode is {mode!r} and the padding {padding!r}", "they must be ones that ONNX names")
    corners = ctx.flag("align_corners")
    positions = [_denormalize(b, grid, i, size, corners) for i, size in enumerate(spatial)]
    if mode == "nearest":
        nearest = [b.emit(hlo.RoundNearestEvenOp, p) for p in positions]
        return [_pixel(b, x, nearest, padding, corners)]
    if ctx.element() == "i1" or is_complex(ctx.element()):
        ctx.unsupported(f"it interpolates {ctx.element()}", fix="use the mode nearest, or convert the input")
    x = b.convert(x, computed)
    if padding == "border" and mode == "linear":
        positions = [clamp_place(b, p, s) for p, s in zip(positions, spatial, strict=True)]
    if padding == "reflection" and mode == "linear":
        positions = [_reflect(b, p, s, corners) for p, s in zip(positions, spatial, strict=True)]
    y = _interpolate(b, x, positions, mode, padding, corners)
    return [convert_value(ctx, y, ctx.element())]


def _interpolate(
    b: Builder, x: SSAValue, places: Sequence[SSAValue], mode: str, padding: str = "zeros", corners: bool = False
) -> SSAValue:
    """`x` (N, C, spatial...) at real places (N, points...) for each spatial dim: (N, C, points...)."""
    total: SSAValue | None = None
    for combination in itertools.product(*(_taps(b, p, mode) for p in places)):
        value = _pixel(b, x, [place for place, _ in combination], padding, corners)
        for _, weight in combination:
            value = b.multiply(value, over_channels(b, weight, value))
        total = value if total is None else b.add(total, value)
    return cast(SSAValue, total)


def over_channels(b: Builder, weight: SSAValue, like: SSAValue) -> SSAValue:
    """(N, points...) in the shape (N, C, points...)."""
    return b.broadcast(weight, shape_of(like), (0, *range(2, rank_of(like))))


def _denormalize(b: Builder, grid: SSAValue, dim: int, size: Size, corners: bool) -> SSAValue:
    """The real position along a spatial dim, from -1..1."""
    rank = rank_of(grid)
    column = rank_of(grid) - 1
    index = cast(int, shape_of(grid)[column]) - 1 - dim
    n = b.reshape(b.slice_axis(grid, column, index, index + 1), shape_of(grid)[: rank - 1])
    moved, length = b.add(n, b.scalar_like(n, 1)), size_of(b, n, size)
    if corners:
        return b.multiply(b.scale(moved, 0.5), b.subtract(length, b.scalar_like(n, 1)))
    return b.scale(b.subtract(b.multiply(moved, length), b.scalar_like(n, 1)), 0.5)


def _taps(b: Builder, position: SSAValue, mode: str) -> list[tuple[SSAValue, SSAValue]]:
    """The places around a position, and their weights."""
    base = b.emit(hlo.FloorOp, position)
    t = b.subtract(position, base)
    one = b.scalar_like(t, 1)
    if mode == "linear":
        return [(base, b.subtract(one, t)), (b.add(base, one), t)]
    distances = [b.add(t, one), t, b.subtract(one, t), b.subtract(b.scalar_like(t, 2), t)]
    weights = [_far(b, distances[0]), _near(b, distances[1]), _near(b, distances[2]), _far(b, distances[3])]
    return [(b.add(base, b.scalar_like(t, offset)), w) for offset, w in zip((-1, 0, 1, 2), weights, strict=True)]


def _polynomial(b: Builder, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
    """Horner's scheme, the highest power first."""
    total = b.scalar_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = b.add(b.multiply(total, x), b.scalar_like(x, c))
    return total


def _near(b: Builder, x: SSAValue) -> SSAValue:
    return _polynomial(b, x, (_CUBIC + 2, -(_CUBIC + 3), 0.0, 1.0))


def _far(b: Builder, x: SSAValue) -> SSAValue:
    return _polynomial(b, x, (_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC))


def clamp_place(b: Builder, place: SSAValue, size: Size) -> SSAValue:
    """A place moved to the nearest one inside."""
    last = b.subtract(size_of(b, place, size), b.scalar_like(place, 1))
    return b.minimum(b.maximum(place, b.scalar_like(place, 0)), last)


def _reflect(b: Builder, place: SSAValue, size: Size, corners: bool) -> SSAValue:
    """A place mirrored at the borders until it lies inside."""
    length = size_of(b, place, size)
    low = b.scalar_like(place, 0.0 if corners else -0.5)
    high = b.subtract(length, b.scalar_like(place, 1.0 if corners else 0.5))
    span = b.subtract(high, low)
    distance = b.emit(hlo.AbsOp, b.subtract(place, low))
    turns = b.emit(hlo.FloorOp, b.divide(distance, span))
    rest = b.subtract(distance, b.multiply(turns, span))
    odd = b.compare(b.binary(hlo.RemainderOp, turns, b.scalar_like(place, 2)), b.scalar_like(place, 0), "NE")
    mirrored = b.add(b.select(odd, b.subtract(span, rest), rest), low)
    single = b.compare(span, b.scalar_like(place, 0), "LE")
    return clamp_place(b, b.select(single, low, mirrored), size)


def _pixel(b: Builder, x: SSAValue, places: Sequence[SSAValue], padding: str, corners: bool) -> SSAValue:
    """`x` at integer places given as floats, those outside by the padding mode."""
    spatial = shape_of(x)[2:]
    if padding == "reflection":
        places = [_reflect(b, p, s, corners) for p, s in zip(places, spatial, strict=True)]
    inside = [clamp_place(b, p, s) for p, s in zip(places, spatial, strict=True)]
    value = sample_places(b, x, [b.convert(p, "i64") for p in inside])
    if padding != "zeros":
        return value
    keep: SSAValue | None = None
    for place, near in zip(places, inside, strict=True):
        same = b.compare(place, near, "EQ")
        keep = same if keep is None else b.emit(hlo.AndOp, keep, same)
    return b.select(over_channels(b, cast(SSAValue, keep), value), value, b.scalar_like(value, 0))


# ---- deformable convolution --------------------------------------------------------------------------------------


@imports("DeformConv", since=19)
def deform_conv(ctx: NodeContext) -> Results:
    """DeformConv: a convolution whose kernel elements are each read at a place of their own: bilinear, zero outside."""
    return [add_bias(ctx, ctx.wide(ctx[0], lambda x: _deform(ctx, x)), 3)]


def _deform(ctx: NodeContext, x: SSAValue) -> SSAValue:
    b, rank = ctx.b, rank_of(x)
    if rank < 3 or any(ctx.rank(i) != rank for i in (1, 2)) or (ctx.has(4) and ctx.rank(4) != rank):
        ctx.invalid(f"X has rank {rank}, W {ctx.rank(1)} and offset {ctx.rank(2)}", "they must be the same, from 3 on")
    kernel, parts = b.convert(ctx[1], element_of(x)), ctx.integer("offset_group", 1)
    sizes, count = kernel_sizes(ctx, kernel), groups(ctx, x, kernel)
    x = ctx.restate(x, {1: shape_of(kernel)[1] * count})
    batch, channels = shape_of(x)[:2]
    shared = ctx.divide_size(channels, parts, "channels")
    windows = Windows.of(ctx, sizes, shape_of(x)[2:])
    out, taps = windows.counts(), math.prod(sizes)
    places = _deformed_places(ctx, windows, (batch, parts, taps, *out), element_of(x))
    merged = b.reshape(x, (batch * parts, shared, *shape_of(x)[2:]))
    values = _interpolate(b, merged, places, "linear")
    if ctx.has(4):
        sizes_of_mask: list[Size] = [batch, parts * taps, *out]
        mask = ctx.restate(b.convert(ctx[4], element_of(x)), dict(enumerate(sizes_of_mask)))
        values = b.multiply(values, over_channels(b, b.reshape(mask, (batch * parts, taps, *out)), values))
    taken, made = shape_of(kernel)[1], shape_of(kernel)[0]
    columns = b.reshape(values, (batch, count, taken * taps, product(out)))
    rows = b.reshape(kernel, (count, ctx.divide_size(made, count, "output channels"), taken * taps))
    # (group, made, batch, place) -> (batch, group * made, place...)
    result = b.dot(rows, columns, DotDimensions((0,), (1,), (2,), (2,)))
    return b.reshape(b.transpose(result, (2, 0, 1, 3)), (batch, made, *out))


def _deformed_places(ctx: NodeContext, windows: Windows, shape: tuple[Size, ...], element: Attribute) -> list[SSAValue]:
    """For each spatial dim the place that each kernel element reads: (batch * offset groups, elements, out...)."""
    b, n = ctx.b, len(windows.kernel)
    batch, parts, taps, *out = shape
    sizes: list[Size] = [batch, parts * taps * n, *out]
    offset = ctx.restate(b.convert(ctx[2], element), dict(enumerate(sizes)))
    offset = b.reshape(offset, (batch * parts, taps, n, *out))
    steps = np.indices(windows.kernel).reshape(n, -1)
    text, target = dtype_text(offset.type), (batch * parts, taps, *out)
    places: list[SSAValue] = []
    for i in range(n):
        inside = b.constant(steps[i] * windows.dilations[i] - cast(int, windows.low[i]), text)
        corner = b.scale(b.iota((out[i],), 0, text), windows.strides[i])
        regular = b.add(b.broadcast(inside, target, (1,)), b.broadcast(corner, target, (2 + i,)))
        places.append(b.add(regular, b.reshape(b.slice_axis(offset, 2, i, i + 1), target)))
    return places
