"""Resizing an axis whose sizes are symbolic: positions and weights are computed in the IR.

Where an output element lies in the input is a fraction of integers, so that its floor and its ties are exact whatever
the sizes turn out to be. Each tap is a gather.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.indexing import take
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import element_of, shape_of

if TYPE_CHECKING:
    from gcomp.frontends.onnx.resize import Interpolation


def interpolated(
    ctx: NodeContext, how: Interpolation, x: SSAValue, axis: int, factor: float | None, target: Size
) -> SSAValue:
    """`x` resized along `axis` to `target`, by `factor` where scales were given."""
    size = shape_of(x)[axis]
    if how.antialias:
        ctx.unsupported(f"it is antialiased, and dim {axis} has the symbolic size {size}", fix="bind it with dims=")
    if isinstance(size, Dim):
        ctx.require("le", 1, size)
    position = _Fraction(ctx, how, size, target, factor)
    if how.mode == "nearest":
        picked = ctx.b.add(position.floor, ctx.b.convert(position.rounds_up(how.nearest), "i64"))
        return take(ctx.b, x, _inside(ctx, picked, size), axis)
    return _weighted(ctx, how, x, axis, position)


class _Fraction:
    """Where the outputs of an axis lie in the input: floor + rest / denominator, as i64."""

    def __init__(self, ctx: NodeContext, how: Interpolation, size: Size, target: Size, factor: float | None) -> None:
        self.ctx = ctx
        b = ctx.b
        # The scale is `up / down`; `y` counts the outputs.
        up, down = (target, size) if factor is None else float(factor).as_integer_ratio()
        y = b.iota((target,), 0)
        if how.transform not in _NUMERATORS:
            ctx.unsupported(f"{how.transform} along a dim of the symbolic size {size}", fix="bind it with dims=")
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


def _weighted(ctx: NodeContext, how: Interpolation, x: SSAValue, axis: int, position: _Fraction) -> SSAValue:
    """The sum of taps times their weights."""
    b, size, element = ctx.b, shape_of(x)[axis], str(element_of(x))
    offsets = (0, 1) if how.mode == "linear" else (-1, 0, 1, 2)
    places = [b.add(position.floor, b.constant(o, "i64")) for o in offsets]
    weights = [_kernel(ctx, how, position.ratio(element), o) for o in offsets]
    if how.exclude_outside:
        weights = _renormalized(ctx, weights, places, size)
    total: SSAValue | None = None
    for place, weight in zip(places, weights, strict=True):
        tap = take(b, x, _inside(ctx, place, size), axis)
        part = b.multiply(tap, b.broadcast(weight, shape_of(tap), (axis,)))
        total = part if total is None else b.add(total, part)
    assert total is not None
    return total


def _renormalized(
    ctx: NodeContext, weights: Sequence[SSAValue], places: Sequence[SSAValue], size: Size
) -> list[SSAValue]:
    """The weights of places within the axis, divided by their sum."""
    b = ctx.b
    kept = [
        b.select(b.compare(_inside(ctx, place, size), place, "EQ"), weight, ctx.full_like(weight, 0))
        for place, weight in zip(places, weights, strict=True)
    ]
    total = kept[0]
    for weight in kept[1:]:
        total = b.add(total, weight)
    return [b.divide(weight, total) for weight in kept]


def _kernel(ctx: NodeContext, how: Interpolation, ratio: SSAValue, offset: int) -> SSAValue:
    """The weight of the tap at `offset` from the floor, for a position `ratio` above it."""
    b, one = ctx.b, ctx.full_like(ratio, 1)
    distance = b.emit(hlo.AbsOp, b.subtract(ratio, b.full((), offset, element_of(ratio))))
    if how.mode == "linear":
        return b.subtract(one, distance)
    a = how.cubic_a
    near = (a + 2, -(a + 3), 0.0, 1.0)
    far = (a, -5 * a, 8 * a, -4 * a)
    return _polynomial(ctx, distance, near if offset in (0, 1) else far)


def _polynomial(ctx: NodeContext, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
    b = ctx.b
    result = b.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        result = b.add(b.multiply(result, x), ctx.full_like(x, c))
    return result
