"""Slice: bounds that are known, that depend on sizes, or that depend on data.

ONNX clamps the start of a backward slice to 0..size-1, so that one that starts below the first element takes that
element. ONNX Runtime does so; the reference evaluator slices as NumPy does, which takes none. gcomp follows the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import data_dependent_sizes, known_sizes, operand_sizes
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.frontends.onnx.operators.data_dependent_slicing import slice_by_data
from gcomp.ir import stablehlo as hlo
from gcomp.ir.gathering import take
from gcomp.ir.types import shape_of

_WHATEVER_SIZE = (1 << 31) - 1
"""Bounds this far out mean "to the end" of a symbolic dim, whatever its size: ONNX recommends to write that."""

_FAR = 10**9
"""Bounds this far out are meant so as well (tf2onnx writes 10^9). A call with a dim that is longer is refused."""

_LONGEST_STEP = 1 << 40
"""Longer steps are this one: no dim is as long, and products with it do not overflow."""


@imports("Slice")
def slice_attributes(ctx: NodeContext) -> Results:
    """Slice-1: starts, ends and axes are attributes."""
    starts, ends = ctx.integers("starts"), ctx.integers("ends")
    axes = ctx.axes("axes", 1, ctx.rank()) or list(range(len(starts or ())))
    return [_slice(ctx, ctx[0], axes, list(starts or ()), list(ends or ()), [1] * len(axes))]


@imports("Slice", since=10)
def slice_inputs(ctx: NodeContext) -> Results:
    """Slice-10: starts, ends, axes and steps are inputs; bounds are clamped, and negative ones count from the end."""
    if ctx.rank() and any(ctx.has(i) and ctx.known_value(i) is None for i in (3, 4)):
        return [slice_by_data(ctx)]
    starts, ends = _bounds(ctx, 1, "starts"), _bounds(ctx, 2, "ends")
    axes = ctx.axes("axes", 3, ctx.rank()) or list(range(len(starts)))
    steps = _steps(ctx, axes) if ctx.has(4) else [1] * len(starts)
    _check_form(ctx, axes, starts, ends, steps)
    x = ctx[0]
    now: list[int] = []
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start is None or end is None:
            x = _data_dependent_slice(ctx, x, axes[i], steps[i], _Bound(1, i, start), _Bound(2, i, end))
        else:
            now.append(i)
    low, high = ([cast(Size, bounds[i]) for i in now] for bounds in (starts, ends))
    return [_slice(ctx, x, [axes[i] for i in now], low, high, [steps[i] for i in now])]


def _steps(ctx: NodeContext, axes: Sequence[int]) -> list[int]:
    steps = ctx.ints_of(4, "steps")
    if 0 in steps:
        ctx.invalid(f"its steps are {steps}", "a slice must move")
    return [max(min(step, _LONGEST_STEP), -_LONGEST_STEP) for step in steps]


def _check_form(ctx: NodeContext, axes: Sequence[int], *lists: Sequence[object]) -> None:
    """Raises InvalidModelError where lists differ in length, or name an axis that is not there."""
    if any(len(values) != len(axes) for values in lists):
        text = ", ".join(str(len(values)) for values in (*lists[:2], axes, *lists[2:]))
        ctx.invalid("starts, ends, axes and steps differ in length", text)
    if any(axis >= ctx.rank() for axis in axes):
        ctx.invalid(f"it has bounds for {len(axes)} axes", f"the tensor has rank {ctx.rank()}")


# ---- bounds that depend on data ----------------------------------------------------------------------------------


class _Bound(NamedTuple):
    """A bound of a slice: element `position` of an operand, and what it is where that is known."""

    operand: int
    position: int
    known: Size | None


def _bounds(ctx: NodeContext, index: int, role: str) -> list[Size | None]:
    """The bounds of a slice; None for those that depend on data."""
    if ctx.rank(index) != 1:
        ctx.invalid(f"its {role} have rank {ctx.rank(index)}", "a list is expected")
    if ctx.known_value(index) is not None:
        return list(operand_sizes(ctx, index, role))
    ctx.static(dims.product(ctx.shape(index)), f"number of {role}")
    return known_sizes(ctx, ctx[index])


def _data_dependent_slice(ctx: NodeContext, x: SSAValue, axis: int, step: int, start: _Bound, end: _Bound) -> SSAValue:
    """`x` cut along an axis, where a bound depends on data."""
    b, size = ctx.b, shape_of(x)[axis]
    if size == 0:
        return x
    whole, zero, one = b.dim(size), b.constant(0, "i64"), b.constant(1, "i64")
    if step > 0:
        first, last = (_from_front(ctx, bound, whole, zero, whole) for bound in (start, end))
        distance = b.subtract(last, first)
    else:
        # In a dim that turns out empty both become -1: `_from_front` applies the greatest place last.
        before, most = b.constant(-1, "i64"), b.subtract(whole, one)
        first, last = (_from_front(ctx, at, whole, least, most) for at, least in ((start, zero), (end, before)))
        distance = b.subtract(first, last)
    room = b.add(distance, b.constant(abs(step) - 1, "i64"))
    count = b.divide(b.maximum(room, zero), b.constant(abs(step), "i64"))
    (length,) = data_dependent_sizes(ctx, count, "length", [size])
    if step != 1:
        positions = b.add(b.multiply(b.iota((length,), 0), b.constant(step, "i64")), first)
        return take(b, x, positions, axis)
    starts = [first if i == axis else zero for i in range(len(shape_of(x)))]
    sizes = [length if i == axis else s for i, s in enumerate(shape_of(x))]
    return b.emit(hlo.DynamicSliceOp, x, *starts, slice_sizes=sizes)


def _from_front(ctx: NodeContext, bound: _Bound, whole: SSAValue, least: SSAValue, most: SSAValue) -> SSAValue:
    """A bound of a slice as a value, counted from the front and clamped."""
    b = ctx.b
    if bound.known is None:
        element = b.slice_axis(ctx[bound.operand], 0, bound.position, bound.position + 1)
        value = b.convert(b.reshape(element, ()), "i64")
    else:
        value = b.dim(bound.known)
    negative = b.compare(value, b.constant(0, "i64"), "LT")
    counted = b.select(negative, b.add(value, whole), value)
    return b.minimum(b.maximum(counted, least), most)


# ---- bounds that are known, or depend on sizes -------------------------------------------------------------------


def _slice(
    ctx: NodeContext,
    x: SSAValue,
    axes: Sequence[int],
    starts: Sequence[Size],
    ends: Sequence[Size],
    steps: Sequence[int],
) -> SSAValue:
    _check_form(ctx, axes, starts, ends, steps)
    b = ctx.b
    shape = list(shape_of(x))
    low: list[Size] = [0] * len(shape)
    high, strides = list(shape), [1] * len(shape)
    reversed_axes: list[int] = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        bounds = _forward if step > 0 else _backward
        low[axis], high[axis], strides[axis] = bounds(ctx, shape[axis], start, end, step)
        if step < 0:
            reversed_axes.append(axis)
    x = b.slice(x, low, high, strides)
    return b.emit(hlo.ReverseOp, x, dimensions=reversed_axes) if reversed_axes else x


def _forward(ctx: NodeContext, size: Size, start: Size, end: Size, step: int) -> tuple[Size, Size, int]:
    low = _clamp(ctx, _count(ctx, start, size), size)
    high = _clamp(ctx, _count(ctx, end, size), size)
    return low, ctx.greater(low, high), step


def _count(ctx: NodeContext, bound: Size, size: Size) -> Size:
    """A bound whose sign depends on its symbols, counted from the front as negative ones are; others as they are."""
    if isinstance(bound, int) or ctx.at_most(bound, -1) or ctx.at_most(0, bound):
        return bound
    below = dims.dmin(1, dims.dmax(0, -bound))  # 1 where the bound is negative, else 0
    return ctx.greater(bound + size * below, 0)


def _clamp(ctx: NodeContext, bound: Size, size: Size) -> Size:
    """A bound of a forward slice, counted from the front and clamped to 0..size."""
    if isinstance(bound, int):
        if _is_beyond(ctx, bound, size):
            return size if bound > 0 else 0
        return ctx.lesser(bound, size) if bound >= 0 else ctx.greater(size + bound, 0)
    if ctx.at_most(bound, -1):
        return ctx.greater(size + bound, 0)
    if not ctx.at_most(0, bound):
        # Its sign depends on its symbols: `negative` is 1 where it counts from the end, else 0.
        negative = dims.dmin(dims.dmax(-1 * bound, 0), 1)
        return ctx.greater(ctx.lesser(bound + size * negative, size), 0)
    if isinstance(size, int) and not ctx.at_most(bound, size) and not ctx.at_most(size, bound):
        ctx.require("le", bound, size)
        return bound
    return ctx.lesser(bound, size)


def _is_beyond(ctx: NodeContext, bound: int, size: Size) -> bool:
    """Whether a bound is meant to lie beyond a symbolic dim of any size, which is noted where it may not."""
    if isinstance(size, int) or abs(bound) < _FAR:
        return False
    if abs(bound) < _WHATEVER_SIZE and not ctx.at_most(size, abs(bound)):
        ctx.require("le", size, abs(bound))
    return True


def _backward(ctx: NodeContext, size: Size, start: Size, end: Size, step: int) -> tuple[Size, Size, int]:
    """The forward slice that takes the same elements."""
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        first = min(max(start + size if start < 0 else start, 0), size - 1)
        last = min(max(end + size if end < 0 else end, -1), size - 1)
        picked = range(first, last, step)
        return (picked[-1], picked[0] + 1, -step) if len(picked) else (0, 0, -step)
    high = ctx.lesser(ctx.greater(_behind(ctx, start, size), 1), size)
    low = ctx.lesser(ctx.greater(_behind(ctx, end, size), 0), size)
    high = ctx.greater(low, high)
    # The last element that is taken is as many whole steps before the first, which is the one before `high`.
    return low + (ctx.greater(high - low, 1) - 1) % -step, high, -step


def _behind(ctx: NodeContext, bound: Size, size: Size) -> Size:
    """The place after a bound of a backward slice, counted from the front."""
    if isinstance(bound, int) and _is_beyond(ctx, bound, size):
        return size if bound > 0 else 0
    if ctx.at_most(0, bound):
        return bound + 1
    if not ctx.at_most(bound, -1):
        ctx.unsupported(f"it goes backward, and whether its bound {bound} counts from the end depends on sizes")
    return size + bound + 1
