"""What a Resize resizes to: the scale of each axis, as a fraction of sizes, and the size of its result."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import tensor
from gcomp.records import record

_WIDEST = 1 << 62
"""Positions are counted as integer fractions in i64."""
_FINEST = 1 << 39
"""The denominator of a scale of 24 bits above 2**-16."""


@record
class Scale:
    """The scale of an axis: `up / down`."""

    up: Size
    down: Size

    @staticmethod
    def of(number: float) -> Scale:
        """The scale that a number is."""
        return Scale(*float(number).as_integer_ratio())

    @property
    def number(self) -> float | None:
        """The scale as a number; None where it depends on symbolic sizes."""
        if isinstance(self.up, Dim) or isinstance(self.down, Dim):
            return None
        return self.up / self.down


def by_scales(ctx: NodeContext, shape: Sequence[Size], scales: Sequence[Scale]) -> list[Size]:
    """The sizes `floor(size * scale)`."""
    return [_scale(ctx, n, s) for n, s in zip(shape, scales, strict=True)]


def _scale(ctx: NodeContext, size: Size, scale: Scale) -> Size:
    if (factor := scale.number) is None:
        target = dims.floordiv(size * scale.up, scale.down)
        _bound(ctx, size, target, scale)
        return target
    if isinstance(size, int):
        return int(factor * size)
    if factor == int(factor) and 1 <= factor < _FINEST:
        return size * int(factor)
    if isinstance(scale.down, int) and scale.down > _FINEST:
        ctx.unsupported(f"the symbolic size {size} is scaled by {factor}", fix="bind the size with dims=")
    target = dims.floordiv(size * scale.up, scale.down)
    _bound(ctx, size, target, scale)
    return target


def to_sizes(ctx: NodeContext, shape: Sequence[Size], sizes: Sequence[Size]) -> tuple[list[Scale], list[Size]]:
    """The scales that lead to the sizes given; to keep the aspect ratio, one scale for all, and what it leads to."""
    policy = ctx.string("keep_aspect_ratio_policy", "stretch")
    if policy not in ("stretch", "not_larger", "not_smaller"):
        ctx.invalid(f"keep_aspect_ratio_policy is {policy!r}", "it must be stretch, not_larger or not_smaller")
    if any(isinstance(k, int) and k < 0 for k in sizes):
        ctx.invalid(f"its sizes are [{', '.join(map(str, sizes))}]", "sizes are not negative")
    if policy == "stretch":
        # A size that is the same, written otherwise, is the input's: its axis is left alone.
        sizes = [n if ctx.ranges.equal(k, n) else k for k, n in zip(sizes, shape, strict=True)]
        return [_between(ctx, n, k) for k, n in zip(sizes, shape, strict=True)], [*sizes]
    return _in_proportion(ctx, shape, sizes, larger=policy == "not_smaller")


def _between(ctx: NodeContext, size: Size, target: Size) -> Scale:
    """The scale from a size to another."""
    if size == target:
        return Scale(1, 1)
    if isinstance(size, int) and size == 0:
        ctx.invalid(f"a dim of size 0 is resized to {target}", "there is nothing to interpolate")
    times = dims.exact_div(target, size) if isinstance(size, Dim) else None
    return Scale(times, 1) if isinstance(times, int) else Scale(target, size)


def _in_proportion(
    ctx: NodeContext, shape: Sequence[Size], sizes: Sequence[Size], *, larger: bool
) -> tuple[list[Scale], list[Size]]:
    """The least (or greatest) scale for all axes, and the sizes that it leads to, halves rounded up.

    All is exact: the scale is `k / n` of one axis, and which axis it is may depend on symbols. (ONNX's reference
    computes with the scale as a double, so that a half may be missed by a rounding.)
    """
    for n in shape:
        if n == 0:
            ctx.invalid("a dim of size 0 is resized", "there is no scale from nothing to something")
        if not ctx.at_most(1, n):
            ctx.require("le", 1, n)
    choose = ctx.greater if larger else ctx.lesser
    pairs = list(zip(sizes, shape, strict=True))
    # With one denominator for all, the least scale is that of the least numerator.
    down = dims.product(shape)
    ups = [k * dims.product([n for j, n in enumerate(shape) if j != i]) for i, k in enumerate(sizes)]
    up = ups[0]
    for other in ups[1:]:
        up = choose(up, other)
    # Rounding keeps the order, so that the least of the rounded sizes is the rounded least.
    targets: list[Size] = []
    for size in shape:
        rounded = [dims.floordiv(2 * k * size + n, 2 * n) for k, n in pairs]
        target = rounded[0]
        for other in rounded[1:]:
            target = choose(target, other)
        targets.append(target)
    for size, target in zip(shape, targets, strict=True):
        _bound(ctx, size, target, Scale(up, down))
    return [Scale(up, down)] * len(shape), targets


def _bound(ctx: NodeContext, size: Size, target: Size, scale: Scale) -> None:
    """Note that positions between two sizes are fractions of integers of 64 bits."""
    widest = 4 * (size + target + 1) * (scale.up + scale.down)
    if not ctx.at_most(widest, _WIDEST):
        ctx.require("le", widest, _WIDEST)


def data_dependent_scales(ctx: NodeContext, index: int) -> list[Scale]:
    """The scales that an operand f32[count] holds, where they are data: as the fractions that they are.

    What is not positive and finite, or far from any scale, becomes sizes of -1, which the host step refuses.
    """
    b, count = ctx.b, ctx.static(ctx.shape(index)[0], "number of scales")
    bits = b.convert(b.emit(hlo.BitcastConvertOp, ctx[index], types=(tensor((count,), "ui32"),)), "i64")
    mantissa_bits = b.constant(1 << 23, "i64")
    exponent = b.divide(bits, mantissa_bits)  # with the sign, which makes it at least 256
    mantissa = b.add(b.binary(hlo.RemainderOp, bits, mantissa_bits), mantissa_bits)
    halvings = b.subtract(b.constant(150, "i64"), exponent)
    lowest = b.emit(hlo.AndOp, mantissa, b.emit(hlo.NegateOp, mantissa))
    one, zero = b.constant(1, "i64"), b.constant(0, "i64")
    zeros = b.emit(hlo.PopcntOp, b.subtract(lowest, one))
    common = b.maximum(b.minimum(zeros, halvings), zero)
    up = b.divide(mantissa, _power_of_two(ctx, common))
    down = _power_of_two(ctx, b.maximum(b.subtract(halvings, common), zero))
    usable = b.emit(hlo.AndOp, b.compare(halvings, zero, "GE"), b.compare(halvings, b.constant(_SMALLEST, "i64"), "LE"))
    scales: list[Scale] = []
    for i in range(count):  # one step for each: a step's sizes are the shape of an array
        numbers = b.concatenate([b.slice_axis(v, 0, i, i + 1) for v in (up, down)], 0)
        fits = b.broadcast(b.slice_axis(usable, 0, i, i + 1), (2,), (0,))
        scales.append(Scale(*data_dependent_sizes(ctx, b.select(fits, numbers, b.constant(-1, "i64")), "scales")))
    return scales


_SMALLEST = 39
"""A scale of 2**-16, whose mantissa is 2**-39 times an integer."""


def _power_of_two(ctx: NodeContext, exponent: SSAValue) -> SSAValue:
    b = ctx.b
    return b.binary(hlo.ShiftLeftOp, b.constant(1, "i64"), exponent)
