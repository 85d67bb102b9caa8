"""Ops whose amounts are data, where their results' sizes are known: as gathers at positions that are computed.

Amounts that do not give the result's declared sizes have no meaning: here they read other elements, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import take
from gcomp.ir.types import rank_of, shape_of, tensor_of


def _amount(b: Builder, amounts: SSAValue, place: int, count: Size) -> SSAValue:
    """One of a vector of amounts, as an i64 vector of `count` copies."""
    one = b.convert(b.slice(amounts, [place], [place + 1], [1]), "i64")
    return b.broadcast(b.reshape(one, ()), (count,), ())


def _spread(b: Builder, x: SSAValue, value: SSAValue, places: Sequence[tuple[SSAValue, SSAValue] | None]) -> SSAValue:
    """Along each axis, the elements at positions where a test holds, and `value` elsewhere; None leaves an axis."""
    for axis, place in enumerate(places):
        if place is None:
            continue
        inside, position = place
        # One more element behind the last stands for all that is outside, also where there is no other.
        size, none = shape_of(x)[axis], [0] * rank_of(x)
        x = b.pad(x, value, none, [int(i == axis) for i in range(rank_of(x))])
        x = take(b, x, b.select(inside, position, b.broadcast(b.dim(size), shape_of(position), ())), axis)
    return x


def _locate_padded(b: Builder, count: Size, size: Size, low: SSAValue, interior: SSAValue) -> tuple[SSAValue, SSAValue]:
    """For `count` positions of a padded axis: whether an element of the operand is there, and which."""
    zero, step = b.full((count,), 0, "i64"), b.add(interior, b.full((count,), 1, "i64"))
    behind = b.subtract(b.iota((count,), 0), low)
    position = b.divide(behind, step)
    inside = b.emit(hlo.AndOp, b.compare(behind, zero, "GE"), b.compare(b.multiply(position, step), behind, "EQ"))
    small = b.compare(position, b.broadcast(b.dim(size), (count,), ()), "LT")
    return b.emit(hlo.AndOp, inside, small), position


def _pad(b: Builder, op: hlo.DynamicPadOp) -> SSAValue:
    places: list[tuple[SSAValue, SSAValue]] = []
    for axis, (size, count) in enumerate(zip(shape_of(op.operand), shape_of(op.result), strict=True)):
        low, interior = (_amount(b, v, axis, count) for v in (op.edge_padding_low, op.interior_padding))
        places.append(_locate_padded(b, count, size, low, interior))
    return _spread(b, op.operand, op.padding_value, places)


def _slice(b: Builder, op: hlo.RealDynamicSliceOp) -> SSAValue:
    places: list[tuple[SSAValue, SSAValue]] = []
    for axis, (size, count) in enumerate(zip(shape_of(op.operand), shape_of(op.result), strict=True)):
        start, stride = (_amount(b, v, axis, count) for v in (op.start_indices, op.strides))
        position = b.add(start, b.multiply(b.iota((count,), 0), stride))
        places.append((b.compare(position, b.broadcast(b.dim(size), (count,), ()), "LT"), position))
    return _spread(b, op.operand, b.scalar_like(op.operand, 0), places)


def _gather(b: Builder, op: hlo.DynamicGatherOp) -> SSAValue:
    """The result's type says the sizes of slices; of what it drops they are 1."""
    d = op.dimensions
    dropped = {*d.collapsed_slice_dims, *d.operand_batching_dims}
    offsets = iter([shape_of(op.result)[i] for i in d.offset_dims])
    sizes = [1 if i in dropped else next(offsets) for i in range(rank_of(op.operand))]
    return b.emit(hlo.GatherOp, op.operand, op.start_indices, dimension_numbers=d, slice_sizes=sizes,
                  indices_are_sorted=op.indices_are_sorted)  # fmt: skip


def _reach(b: Builder, made: Size, window: Size, stride: int, dilation: int) -> Size:
    """How many elements so many windows need, or a few more where there may be none: of a formula that is no maximum,
    the number of windows follows again."""
    exactly = (made - 1) * stride + (window - 1) * dilation + 1
    if b.program.ranges.less_equal(0, exactly):
        return exactly
    return b.program.ranges.greater(made * stride + (window - 1) * dilation, 0)


def _convolution(b: Builder, op: hlo.DynamicConvOp) -> SSAValue:
    """The input is padded before: as far as the windows of the result reach."""
    numbers = op.dimension_numbers.data
    spatial = numbers.input_spatial_dimensions
    count = len(spatial)
    strides, spread, dilation = (
        op.value(name) or (1,) * count for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    amounts = b.reshape(op.padding, (2 * count,))
    places: list[tuple[SSAValue, SSAValue] | None] = [None] * rank_of(op.lhs)
    for i, axis in enumerate(spatial):
        window = shape_of(op.rhs)[numbers.kernel_spatial_dimensions[i]]
        made = shape_of(op.result)[numbers.output_spatial_dimensions[i]]
        reach = _reach(b, made, window, strides[i], dilation[i])
        low = _amount(b, amounts, 2 * i, reach)
        interior = b.full((reach,), spread[i] - 1, "i64")
        places[axis] = _locate_padded(b, reach, shape_of(op.lhs)[axis], low, interior)
    lhs = _spread(b, op.lhs, b.scalar_like(op.lhs, 0), places)
    kept = ("window_strides", "rhs_dilation", "window_reversal", "dimension_numbers", "feature_group_count",
            "batch_group_count", "precision_config")  # fmt: skip
    properties: dict[str, Any] = {name: op.properties[name] for name in kept if name in op.properties}
    return b.emit(hlo.ConvolutionOp, lhs, op.rhs, types=(tensor_of(op.result),), **properties)


def _iota(b: Builder, op: hlo.DynamicIotaOp) -> SSAValue:
    return b.emit(hlo.IotaOp, types=(tensor_of(op.result),), iota_dimension=op.value("iota_dimension"))


def _size(b: Builder, op: hlo.GetDimensionSizeOp) -> SSAValue:
    return b.dim(shape_of(op.operand)[int(op.value("dimension"))], "i32")


AMOUNTS: Mapping[type[Any], Callable[[Builder, Any], SSAValue]] = {
    hlo.DynamicConvOp: _convolution,
    hlo.DynamicGatherOp: _gather,
    hlo.DynamicIotaOp: _iota,
    hlo.DynamicPadOp: _pad,
    hlo.GetDimensionSizeOp: _size,
    hlo.RealDynamicSliceOp: _slice,
}
"""Op class -> its form of known sizes."""


def resize(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The result, of the sizes that its type declares."""
    return [AMOUNTS[type(op)](b, op)]
