"""Elements by their indices along an axis, and in order: what every frontend builds of gathers and sorts."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor


def wrap_indices(b: Builder, indices: SSAValue, size: Size) -> SSAValue:
    """Indices with negative ones counted from the end of a dim of `size`."""
    text = dtype_text(indices.type)
    if text.startswith("ui"):
        return indices
    negative = b.compare(indices, b.constant(0, text), "LT")
    return b.select(negative, b.add(indices, b.dim(size, text)), indices)


def take(b: Builder, x: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
    """Slices of `x` at non-negative `indices` along `axis`; the indices' shape replaces the axis."""
    dimensions = dimensions_of_take(axis, rank_of(x), rank_of(indices))
    sizes = [1 if i == axis else s for i, s in enumerate(shape_of(x))]
    return b.emit(hlo.GatherOp, x, indices, dimension_numbers=dimensions, slice_sizes=sizes)


def dimensions_of_take(axis: int, rank: int, count: int) -> GatherDimensions:
    """How `take` reads a tensor of a rank, along an axis, by indices with `count` dimensions."""
    return GatherDimensions(
        offset_dims=(*range(axis), *range(axis + count, rank + count - 1)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=count,
    )


def take_along(b: Builder, x: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
    """NumPy's take_along_axis for non-negative indices, whose other dims may be smaller than those of `x`."""
    rank, shape = rank_of(x), shape_of(indices)
    limits = [s if i == axis else n for i, (s, n) in enumerate(zip(shape_of(x), shape, strict=True))]
    x = b.slice(x, [0] * rank, limits)
    others = tuple(i for i in range(rank) if i != axis)
    dimensions = GatherDimensions((), (axis,), others, others, (axis,), rank)
    return b.emit(hlo.GatherOp, x, indices, dimension_numbers=dimensions, slice_sizes=[1] * rank)


def sort_along(b: Builder, x: SSAValue, axis: int, *, descending: bool) -> tuple[SSAValue, SSAValue]:
    """`x` sorted stably along an axis, and where each element came from; NaN counts as the greatest."""
    floating = is_float(dtype_text(x.type))
    scalar, place = tensor((), element_of(x)), tensor((), "i64")

    def before(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        left, right = args[:2]
        less = b.compare(left, right, "GT" if descending else "LT")
        if not floating:
            return [less]
        # NaN first when descending, last when ascending.
        first, second = (left, right) if descending else (right, left)
        nan, other = b.compare(first, first, "NE"), b.compare(second, second, "EQ")
        return [b.emit(hlo.OrOp, less, b.emit(hlo.AndOp, nan, other))]

    region = b.region([scalar, scalar, place, place], before)
    places = b.iota(shape_of(x), axis)
    values, order = b.emit_all(hlo.SortOp, x, places, regions=(region,), dimension=axis, is_stable=True)
    return values, order
