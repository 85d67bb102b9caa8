"""Data movement: what stays in place, and what is counted from a dimension's end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.types import shape_of
from gcomp.padding.layouts import extent
from gcomp.padding.sweep import Padded, Sweep, refuse
from gcomp.padding.table import pads


@pads("independent", hlo.ReshapeOp, hlo.DynamicReshapeOp)
def reshape(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Dimensions are merged and split as their factors are; where that does not go, the elements are moved."""
    x, shape = operands[0], shape_of(op.result)
    layout = sweep.sizes.reshaped(x.layout, shape)
    if layout is None:
        return [sweep.relaid(x, shape)]
    return [Padded(sweep.b.reshape(x.value, shape), layout, x.fill)]


@pads("placed", hlo.ConcatenateOp)
def concatenate(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Each operand is put where the true sizes of those before it end, over the padding of the one before."""
    b = sweep.b
    axis: int = op.value("dimension")
    parts = [sweep.compact(x, [axis]) for x in operands]
    if len({tuple(f for i, f in enumerate(x.layout) if i != axis) for x in parts}) > 1:
        parts = [sweep.compact(x) for x in parts]
    total = shape_of(op.result)
    sizes = [extent(x.layout[axis]) for x in parts]
    layout = tuple([(total[i],) if i == axis else f for i, f in enumerate(parts[0].layout)])
    value = b.concatenate([x.value for x in parts], axis)
    if any(map(sweep.sizes.touches, sizes[:-1])):
        before: Size = 0
        for x, size in zip(parts, sizes, strict=True):
            if sweep.sizes.touches(before):
                starts = [sweep.lengths.true(before if i == axis else 0) for i in range(len(total))]
                value = b.emit(hlo.DynamicUpdateSliceOp, value, x.value, *starts)
            before = before + size
    return [Padded(value, layout)]


@pads("neutral", hlo.PadOp)
def pad(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """What is padding already gets the padding value, so that it goes on where the true elements end."""
    x, value = operands
    low, high = sizes_of(op.edge_padding_low), sizes_of(op.edge_padding_high)
    interior: tuple[int, ...] = op.value("interior_padding")
    changed = [i for i, amounts in enumerate(zip(low, high, interior, strict=True)) if any(a != 0 for a in amounts)]
    x = sweep.compact(x, changed)
    behind = [i for i in changed if _may_pad(sweep, high[i]) or interior[i] or sweep.sizes.touches(low[i])]
    masked = sweep.lengths.kept(x.value, x.layout, behind, value.value)
    made = sweep.around(op, [masked, value.value])[0]
    shape = shape_of(op.result)
    layout = tuple([(shape[i],) if i in changed else f for i, f in enumerate(x.layout)])
    result = Padded(made, layout)
    for i in changed:
        if sweep.sizes.touches(low[i]):
            if not sweep.sizes.grows(low[i]):
                refuse(sweep, op, f"its padding {low[i]} may be less for a longer input")
            result = Padded(_shift(sweep, result, i, low[i], value.value), layout)
    return [result]


def _may_pad(sweep: Sweep, amount: Size) -> bool:
    return sweep.sizes.ranges.less_equal(amount, 0) is not True


def _shift(sweep: Sweep, x: Padded, dimension: int, size: Size, behind: SSAValue | None = None) -> SSAValue:
    """The value from `size` less its true value on, along a dimension; what comes behind it is `behind`, or 0."""
    b, shape = sweep.b, [extent(factors) for factors in x.layout]
    high: list[Size] = [size if i == dimension else 0 for i in range(len(shape))]
    filler = b.scalar_like(x.value, 0) if behind is None else behind
    wide = b.pad(x.value, filler, [0] * len(shape), high)
    offset = b.subtract(b.dim(size), sweep.lengths.true(size))
    starts = [offset if i == dimension else b.constant(0, "i64") for i in range(len(shape))]
    return b.emit(hlo.DynamicSliceOp, wide, *starts, slice_sizes=shape)


@pads("placed", hlo.ReverseOp)
def reverse(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """The last true element comes first: after the turn, what was padding is left out in front."""
    dimensions: tuple[int, ...] = op.value("dimensions")
    turned = [i for i in dimensions if sweep.sizes.is_padded(operands[0].layout[i])]
    x = sweep.compact(operands[0], turned)
    result = Padded(sweep.around(op, [x.value])[0], x.layout)
    for i in turned:
        result = Padded(_shift(sweep, result, i, extent(x.layout[i])), x.layout)
    return [result]


@pads("placed", hlo.SliceOp)
def slice_(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """A slice from a place that does not depend on the size stays; any other begins at its true place."""
    b, sizes = sweep.b, sweep.sizes
    starts, limits = sizes_of(op.start_indices), sizes_of(op.limit_indices)
    strides: tuple[int, ...] = op.value("strides")
    shape, old = shape_of(op.result), [extent(f) for f in operands[0].layout]
    cut = [i for i in range(len(old)) if (starts[i], limits[i], strides[i]) != (0, old[i], 1)]
    x = sweep.compact(operands[0], cut)
    layout = tuple([(shape[i],) if i in cut else f for i, f in enumerate(x.layout)])
    moving = [i for i in cut if sizes.touches(starts[i])]
    if not moving:
        return [Padded(sweep.around(op, [x.value])[0], layout)]
    widths = list(old)
    for i in moving:
        widths[i] = limits[i] - starts[i]
        if not sizes.grows(starts[i]) and sizes.touches(widths[i]):
            refuse(sweep, op, f"its start {starts[i]} may be less for a longer input")
    at = [sweep.lengths.true(starts[i]) if i in moving else b.constant(0, "i64") for i in range(len(old))]
    part = b.emit(hlo.DynamicSliceOp, x.value, *at, slice_sizes=widths)
    begin: list[Size] = [0 if i in moving else start for i, start in enumerate(starts)]
    end: list[Size] = [widths[i] if i in moving else limit for i, limit in enumerate(limits)]
    return [Padded(b.slice(part, begin, end, strides), layout)]


@pads("independent", hlo.IotaOp, hlo.DynamicIotaOp)
def iota(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """Positions of a prefix are those of the whole."""
    value = sweep.b.emit(hlo.IotaOp, types=(op.results[0].type,), iota_dimension=op.value("iota_dimension"))
    return [Padded(value, sweep.plain(value))]


@pads("independent", hlo.BroadcastInDimOp, hlo.DynamicBroadcastInDimOp)
def broadcast(sweep: Sweep, op: Any, operands: Sequence[Padded]) -> list[Padded]:
    """New dimensions repeat what is there; a padded dimension stays itself."""
    x, shape = operands[0], shape_of(op.result)
    places: tuple[int, ...] = op.value("broadcast_dimensions")
    layout = list(sweep.sizes.plain(shape))
    for factors, place in zip(x.layout, places, strict=True):
        if extent(factors) == shape[place]:
            layout[place] = factors
        elif extent(factors) != 1:
            refuse(sweep, op, f"whether its size {extent(factors)} is repeated depends on the length")
    return [Padded(sweep.b.broadcast(x.value, shape, places), tuple(layout), x.fill)]
