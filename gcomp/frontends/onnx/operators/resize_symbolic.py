"""Resizing an axis whose sizes are symbolic: positions and weights are computed in the IR.

Where an output element lies in the input is a fraction of integers, so that its floor and its ties are exact whatever
the sizes turn out to be. Each tap is a gather; antialiased, where the number of taps depends on the scale, the weights
of all elements are a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.operators.interpolation import Interpolation
from gcomp.frontends.onnx.operators.resize_targets import Scale
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.gathering import take
from gcomp.ir.types import element_of, rank_of, shape_of

Region: TypeAlias = "tuple[float | SSAValue, float | SSAValue]"
"""Which part of an axis is resized, from 0 to 1; f64 where data tell."""


def interpolate(
    ctx: NodeContext, how: Interpolation, x: SSAValue, axis: int, scale: Scale, target: Size, roi: Region
) -> SSAValue:
    """`x` resized along `axis` to `target`, or that part of it that `roi` says."""
    size = shape_of(x)[axis]
    if isinstance(size, Dim) and not ctx.at_most(1, size):
        ctx.require("le", 1, size)
    b = ctx.b
    if how.transform == "tf_crop_and_resize":
        cropped = _Cropped(ctx, size, target, scale, roi)
        result = _sample(ctx, how, x, axis, scale, cropped)
        outside = b.broadcast(cropped.outside, shape_of(result), (axis,))
        result = b.select(outside, ctx.b.scalar_like(x, ctx.number("extrapolation_value")), result)
        whole: SSAValue | None = cropped.whole
    else:
        result, whole = _sample(ctx, how, x, axis, scale, _Fraction(ctx, how, size, target, scale)), None
    if how.mode == "nearest" or ctx.ranges.equal(scale.up, scale.down) is False:
        return result
    if whole is None and scale.number is not None:
        return result
    # An axis that turns out to keep its size is left alone: 0 times infinity would not be.
    alone = b.compare(b.dim(scale.up), b.dim(scale.down), "EQ")
    alone = alone if whole is None else b.emit(hlo.AndOp, alone, whole)
    return b.select(alone, take(b, x, _inside(ctx, b.iota((target,), 0), size), axis), result)


def _sample(ctx: NodeContext, how: Interpolation, x: SSAValue, axis: int, scale: Scale, position: Position) -> SSAValue:
    """`x` at the positions of the outputs."""
    size = shape_of(x)[axis]
    if how.mode == "nearest":
        picked = ctx.b.add(position.floor, ctx.b.convert(position.rounds_up(how.nearest), "i64"))
        return take(ctx.b, x, _inside(ctx, picked, size), axis)
    if how.antialias:
        return _antialias(ctx, how, x, axis, position, scale)
    return _weight(ctx, how, x, axis, position)


class Position(Protocol):
    """Where the outputs of an axis lie in the input."""

    floor: SSAValue
    """The element at or before each, i64."""

    def rounds_up(self, nearest: str) -> SSAValue:
        """Whether the nearest position is that above the floor."""
        ...

    def ratio(self, element: str) -> SSAValue:
        """How far it is above the floor, in [0, 1)."""
        ...


class _Fraction:
    """Where the outputs of an axis lie in the input: floor + rest / denominator, as i64."""

    def __init__(self, ctx: NodeContext, how: Interpolation, size: Size, target: Size, scale: Scale) -> None:
        self.ctx = ctx
        b = ctx.b
        up, down = scale.up, scale.down
        y = b.iota((target,), 0)  # counts the outputs
        numerator, denominator = _NUMERATORS[how.transform](ctx, y, size, target, up, down)
        self.denominator = b.maximum(b.dim(denominator), b.constant(1, "i64"))
        # Division truncates, and no position lies below -1.
        self.floor = b.subtract(b.divide(b.add(numerator, self.denominator), self.denominator), b.constant(1, "i64"))
        self.rest = b.subtract(numerator, b.multiply(self.floor, self.denominator))

    def rounds_up(self, nearest: str) -> SSAValue:
        """Whether the nearest position is that above the floor."""
        b = self.ctx.b
        half = nearest.startswith("round")
        twice = b.multiply(self.rest, b.constant(2 if half else 1, "i64"))
        bound = self.denominator if half or nearest == "floor" else b.constant(0, "i64")
        return b.compare(twice, bound, "GE" if nearest == "round_prefer_ceil" else "GT")

    def ratio(self, element: str) -> SSAValue:
        """The rest as a number in [0, 1)."""
        b = self.ctx.b
        return b.divide(b.convert(self.rest, element), b.convert(self.denominator, element))


class _Cropped:
    """Positions in a part of the input, whose ends are real numbers: computed in f64, as ONNX's reference does."""

    def __init__(self, ctx: NodeContext, size: Size, target: Size, scale: Scale, roi: Region) -> None:
        self.b = b = ctx.b
        start, end = (v if isinstance(v, SSAValue) else b.constant(v, "f64") for v in roi)
        up, down, length, last = (b.convert(b.dim(v), "f64") for v in (scale.up, scale.down, size, size - 1))
        zero, one = b.constant(0.0, "f64"), b.constant(1.0, "f64")
        width = b.multiply(b.divide(up, down), length)
        span = b.multiply(b.subtract(end, start), last)
        spread = b.divide(b.multiply(b.iota((target,), 0, "f64"), span), b.subtract(width, one))
        x = b.select(b.compare(width, one, "EQ"), b.scale(span, 0.5), spread)
        x = b.add(x, b.multiply(start, last))
        within = b.emit(hlo.AndOp, b.compare(x, zero, "GE"), b.compare(x, last, "LE"))
        self.outside = b.emit(hlo.NotOp, within)
        self.whole = b.emit(hlo.AndOp, b.compare(start, zero, "EQ"), b.compare(end, one, "EQ"))
        x = b.select(within, x, zero)
        floor = b.emit(hlo.FloorOp, x)
        self.floor, self.rest = b.convert(floor, "i64"), b.subtract(x, floor)

    def rounds_up(self, nearest: str) -> SSAValue:
        """Whether the nearest position is that above the floor."""
        bound = self.b.constant({"ceil": 0.0, "floor": 1.0}.get(nearest, 0.5), "f64")
        return self.b.compare(self.rest, bound, "GE" if nearest == "round_prefer_ceil" else "GT")

    def ratio(self, element: str) -> SSAValue:
        """How far it is above the floor, in [0, 1)."""
        return self.b.convert(self.rest, element)


_Numerator = Callable[[NodeContext, SSAValue, Size, Size, Size, Size], tuple[SSAValue, Size]]


def _half_pixel(ctx: NodeContext, y: SSAValue, size: Size, target: Size, up: Size, down: Size) -> tuple[SSAValue, Size]:
    """(y + 1/2) / scale - 1/2."""
    return _affine(ctx, y, 2 * down, down - up), 2 * up


def _pytorch(ctx: NodeContext, y: SSAValue, size: Size, target: Size, up: Size, down: Size) -> tuple[SSAValue, Size]:
    """As half_pixel, but -1/2 where size times scale is 1 (ONNX's reference says so; ONNX Runtime rounds it first)."""
    b = ctx.b
    single = b.compare(b.dim(size * up), b.dim(down), "EQ")
    return b.select(single, b.dim(-up), _affine(ctx, y, 2 * down, down - up)), 2 * up


def _symmetric(ctx: NodeContext, y: SSAValue, size: Size, target: Size, up: Size, down: Size) -> tuple[SSAValue, Size]:
    """As half_pixel, with what a rounded result size leaves over on both sides."""
    return _affine(ctx, y, 2 * down, down - up + size * up - target * down), 2 * up


def _asymmetric(ctx: NodeContext, y: SSAValue, size: Size, target: Size, up: Size, down: Size) -> tuple[SSAValue, Size]:
    """y / scale."""
    return _affine(ctx, y, down, 0), up


def _corners(ctx: NodeContext, y: SSAValue, size: Size, target: Size, up: Size, down: Size) -> tuple[SSAValue, Size]:
    """y * (size - 1) / (scale * size - 1), and 0 where that divides by 0."""
    b = ctx.b
    width = size * up - down
    some = b.compare(b.dim(width), b.constant(0, "i64"), "GT")
    return b.select(some, _affine(ctx, y, (size - 1) * down, 0), b.constant(0, "i64")), width


def _tf_half_pixel(
    ctx: NodeContext, y: SSAValue, size: Size, target: Size, up: Size, down: Size
) -> tuple[SSAValue, Size]:
    """(y + 1/2) / scale."""
    return _affine(ctx, y, 2 * down, down), 2 * up


_NUMERATORS: dict[str, _Numerator] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": _pytorch,
    "half_pixel_symmetric": _symmetric,
    "asymmetric": _asymmetric,
    "align_corners": _corners,
    "tf_half_pixel_for_nn": _tf_half_pixel,
}


def _affine(ctx: NodeContext, y: SSAValue, factor: Size, offset: Size) -> SSAValue:
    b = ctx.b
    return b.add(b.multiply(y, b.dim(factor)), b.dim(offset))


def _inside(ctx: NodeContext, positions: SSAValue, size: Size) -> SSAValue:
    b = ctx.b
    return b.maximum(b.minimum(positions, b.dim(size - 1)), b.constant(0, "i64"))


def _weight(ctx: NodeContext, how: Interpolation, x: SSAValue, axis: int, position: Position) -> SSAValue:
    """The sum of taps times their weights."""
    b, size, element = ctx.b, shape_of(x)[axis], str(element_of(x))
    offsets = (0, 1) if how.mode == "linear" else (-1, 0, 1, 2)
    places = [b.add(position.floor, b.constant(o, "i64")) for o in offsets]
    weights = [_kernel(ctx, how, position.ratio(element), o) for o in offsets]
    if how.exclude_outside:
        weights = _renormalize(ctx, weights, places, size)
    total: SSAValue | None = None
    for place, weight in zip(places, weights, strict=True):
        tap = take(b, x, _inside(ctx, place, size), axis)
        part = b.multiply(tap, b.broadcast(weight, shape_of(tap), (axis,)))
        total = part if total is None else b.add(total, part)
    assert total is not None
    return total


def _renormalize(
    ctx: NodeContext, weights: Sequence[SSAValue], places: Sequence[SSAValue], size: Size
) -> list[SSAValue]:
    """The weights of places within the axis, divided by their sum."""
    b = ctx.b
    kept = [
        b.select(b.compare(_inside(ctx, place, size), place, "EQ"), weight, ctx.b.scalar_like(weight, 0))
        for place, weight in zip(places, weights, strict=True)
    ]
    total = kept[0]
    for weight in kept[1:]:
        total = b.add(total, weight)
    return [b.divide(weight, total) for weight in kept]


def _kernel(ctx: NodeContext, how: Interpolation, ratio: SSAValue, offset: int) -> SSAValue:
    """The weight of the tap at `offset` from the floor, for a position `ratio` above it."""
    b, one = ctx.b, ctx.b.scalar_like(ratio, 1)
    distance = b.emit(hlo.AbsOp, b.subtract(ratio, b.scalar_like(ratio, offset)))
    if how.mode == "linear":
        return b.subtract(one, distance)
    near, far = _cubic(how)
    return _polynomial(ctx, distance, near if offset in (0, 1) else far)


def _cubic(how: Interpolation) -> tuple[Sequence[float], Sequence[float]]:
    """The coefficients of the cubic kernel for distances up to 1, and from 1 to 2."""
    a = how.cubic_a
    return (a + 2, -(a + 3), 0.0, 1.0), (a, -5 * a, 8 * a, -4 * a)


def _polynomial(ctx: NodeContext, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
    b = ctx.b
    result = b.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        result = b.add(b.multiply(result, x), ctx.b.scalar_like(x, c))
    return result


def _antialias(
    ctx: NodeContext, how: Interpolation, x: SSAValue, axis: int, position: Position, scale: Scale
) -> SSAValue:
    """The product of `x` and the matrix of weights `[output, element]` of a kernel as wide as the scale is small."""
    b, size, element = ctx.b, shape_of(x)[axis], str(element_of(x))
    reach = 1 if how.mode == "linear" else 2
    floor, margin = position.floor, 0
    if not how.exclude_outside:
        # Elements beyond the ends are repeated as far as kernels reach. Where corners are aligned to a size that was
        # rounded up, positions may lie further out still: there an end is all that any of them sees.
        width = ctx.greater(dims.ceildiv(reach * scale.down, ctx.greater(scale.up, 1)), reach)
        margin = 2 * width if how.transform == "align_corners" else width
        floor = b.maximum(b.minimum(floor, b.dim(size - 1 + width)), b.dim(-1 * width))
        places = b.subtract(b.iota((size + 2 * margin,), 0), b.dim(margin))
        x = take(b, x, _inside(ctx, places, size), axis)
    shape = (*shape_of(floor), shape_of(x)[axis])
    steps = b.subtract(b.iota(shape, 1), b.broadcast(b.add(floor, b.dim(margin)), shape, (0,)))
    distance = b.subtract(b.convert(steps, element), b.broadcast(position.ratio(element), shape, (0,)))
    shrink = b.divide(b.convert(b.dim(scale.up), element), b.convert(b.dim(scale.down), element))
    distance = b.emit(hlo.AbsOp, b.multiply(distance, b.minimum(shrink, ctx.b.scalar_like(shrink, 1))))
    weights = _spread(ctx, how, distance)
    total = b.reduce(hlo.AddOp, weights, [1], keepdims=True)
    none = b.compare(total, ctx.b.scalar_like(total, 0), "EQ")
    weights = b.divide(weights, b.select(none, ctx.b.scalar_like(total, 1), total))
    product, last = b.dot(x, weights, DotDimensions((), (), (axis,), (1,))), rank_of(x) - 1
    return b.transpose(product, [*range(axis), last, *range(axis, last)])


def _spread(ctx: NodeContext, how: Interpolation, distance: SSAValue) -> SSAValue:
    """The kernel at distances that are scaled already."""
    b, zero, one = ctx.b, ctx.b.scalar_like(distance, 0), ctx.b.scalar_like(distance, 1)
    if how.mode == "linear":
        return b.maximum(b.subtract(one, distance), zero)
    near, far = (_polynomial(ctx, distance, coefficients) for coefficients in _cubic(how))
    outer = b.select(b.compare(distance, ctx.b.scalar_like(distance, 2), "LT"), far, zero)
    return b.select(b.compare(distance, one, "LE"), near, outer)
