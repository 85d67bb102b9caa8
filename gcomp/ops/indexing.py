"""Parts of tensors by index: slices, integers, tensors of integers; and copies in which such parts are changed.

Negative indices count from the end. Where an index in a tensor is out of bounds, the nearest element within is meant:
only a run knows, and it cannot raise. A constant index out of bounds is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NamedTuple, cast

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Dim, Size
from gcomp.dtypes import text_of
from gcomp.errors import UnsupportedError, UsageError
from gcomp.ir import gathering
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions, ScatterDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor
from gcomp.ops.reduction import axis_of
from gcomp.tensors.lifting import array_of, builder_of, cast_value, lift_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import require
from gcomp.tensors.tensor import ArrayLike, Tensor, tensors_in

Index = Any
"""An index expression: what stands in `x[...]`, or a tuple of such."""


@operation
def getitem(x: ArrayLike, index: Index) -> Tensor:
    """`x[index]` as in NumPy, without boolean masks."""
    parts = list(cast("Sequence[Any]", index)) if isinstance(index, tuple) else [index]
    b = builder_of(x, *tensors_in(parts))
    _, (value,) = lift_operands(x, b=b)
    return Tensor(b, _index(b, value, parts))


class _Plan(NamedTuple):
    """An index, dimension by dimension of the operand: a slice, an integer or a tensor of integers for each."""

    selectors: list[Any]
    new: list[int]
    """Places, among the dimensions and new ones, at which a new dimension of size 1 stands."""


def _index(b: Builder, x: SSAValue, parts: Sequence[Any]) -> SSAValue:
    plan = _plan_index(b, parts, rank_of(x))
    chosen = [i for i, s in enumerate(plan.selectors) if not isinstance(s, slice)]
    arrays = any(isinstance(plan.selectors[i], SSAValue) for i in chosen)
    for axis, selector in enumerate(plan.selectors):
        if isinstance(selector, slice):
            x = _slice(b, x, axis, cast("slice[Any, Any, Any]", selector))
        elif not arrays:
            place = _static(selector, shape_of(x)[axis])
            x = b.slice_axis(x, axis, place, place + 1)
    if not arrays:
        return _shape_result(b, x, plan, chosen)
    # As in NumPy, the indices' dimensions stand where the indexed ones did, or first where something was between.
    together = [i for i, s in enumerate(_with_new(plan)) if not isinstance(s, slice) and s is not None]
    front = together[-1] - together[0] + 1 != len(together)
    indices = [_index_tensor(b, plan.selectors[i], shape_of(x)[i]) for i in chosen]
    place = 0 if front else chosen[0]
    found, count = _gather(b, x, indices, chosen, place)
    return _widen(b, found, plan, chosen, place, count, front)


def _plan_index(b: Builder, parts: Sequence[Any], rank: int) -> _Plan:
    """What the parts of an index say of each dimension. UsageError for too many, UnsupportedError for masks."""
    given = [p for p in parts if p is not None and not isinstance(p, EllipsisType)]
    ellipses = [i for i, p in enumerate(parts) if isinstance(p, EllipsisType)]
    if len(given) > rank:
        raise UsageError(f"{len(given)} indices are too many for a tensor of rank {rank}")
    if len(ellipses) > 1:
        raise UsageError("an index has only one `...`")
    cut = ellipses[0] if ellipses else len(parts)
    whole: list[Any] = [slice(None)] * (rank - len(given))
    full = [*parts[:cut], *whole, *parts[cut + len(ellipses) :]]
    return _Plan([_selector(b, p) for p in full if p is not None], [i for i, p in enumerate(full) if p is None])


def _selector(b: Builder, part: Any) -> Any:
    """A slice, a static integer, or a tensor of integers."""
    if isinstance(part, slice | Dim) or type(part) is int:
        return cast(Any, part)
    if isinstance(part, Tensor) or not _is_integer(part):
        text = dtype_text(lift_operands(part, b=b)[1][0].type) if isinstance(part, Tensor) else _mask_text(part)
        if text == "i1":
            raise UnsupportedError(
                "a boolean mask as an index selects a number of elements that only a run knows",
                fix="use ops.where(mask, x, 0), or `x.at[...]` with ops.where for the value",
            )
        require("an index", text, 1)
        return lift_operands(part, b=b)[1][0]
    return operator.index(part)


def _is_integer(part: Any) -> bool:
    if isinstance(part, bool):
        return False
    try:
        operator.index(part)
    except TypeError:
        return False
    return True


def _mask_text(part: Any) -> str:
    """The element type of an index that is neither a slice, nor an integer, nor a tensor."""
    tensors = list(tensors_in(part))
    if tensors:
        return tensors[0].element
    array = array_of(part)
    return text_of(array.dtype) if array.size else "i64"


def _static(index: Size, size: Size) -> Size:
    """A constant index counted from the front."""
    if isinstance(index, int) and isinstance(size, int) and not -size <= index < size:
        raise UsageError(f"index {index} is out of bounds for a dimension of size {size}")
    return index + size if isinstance(index, int) and index < 0 else index


def _slice(b: Builder, x: SSAValue, axis: int, part: slice[Any, Any, Any]) -> SSAValue:
    """A dimension cut as Python cuts sequences; bounds are integers or symbolic sizes."""
    size = shape_of(x)[axis]
    step = 1 if part.step is None else _bound(part.step)
    if not isinstance(step, int) or step == 0:
        raise UsageError(f"the step {step} of a slice is not an integer other than 0")
    if step < 0:
        # The elements from start down to stop are those up from stop + 1, in reverse.
        first = size - 1 if part.start is None else _clamp(_bound(part.start), size, -1, size - 1)
        last = -1 if part.stop is None else _clamp(_bound(part.stop), size, -1, size - 1)
        count = dims.dmax(dims.ceildiv(first - last, -step), 0)
        low = first - (count - 1) * -step
        if count == 0:
            return b.slice_axis(x, axis, 0, 0)
        return b.emit(hlo.ReverseOp, b.slice_axis(x, axis, low, first + 1, -step), dimensions=[axis])
    start = 0 if part.start is None else _clamp(_bound(part.start), size, 0, size)
    stop = size if part.stop is None else _clamp(_bound(part.stop), size, 0, size)
    return b.slice_axis(x, axis, start, dims.dmax(start, stop), step)


def _bound(value: Any) -> Size:
    if isinstance(value, Dim):
        return value
    if isinstance(value, Tensor) and value.is_traced:
        raise UnsupportedError(
            "a slice has a bound that only a run knows",
            why="its size would depend on data",
            fix="use ops.dynamic_slice, whose size is given",
        )
    try:
        return operator.index(value)
    except TypeError:
        raise UsageError(f"a bound of a slice is a {type(value).__name__}, not an integer") from None


def _clamp(bound: Size, size: Size, low: int, high: Size) -> Size:
    place = bound + size if isinstance(bound, int) and bound < 0 else bound
    return dims.dmin(dims.dmax(place, low), high) if isinstance(bound, int) else dims.dmin(place, high)


# ---- tensors of indices ---------------------------------------------------------------------------------------------


def _index_tensor(b: Builder, selector: Any, size: Size) -> SSAValue:
    """The indices for a dimension, in 64 bits and counted from the front."""
    if not isinstance(selector, SSAValue):
        return b.dim(_static(selector, size))
    return gathering.wrap_indices(b, cast_value(b, cast(SSAValue, selector), "i64"), size)


def _gather(
    b: Builder, x: SSAValue, indices: Sequence[SSAValue], axes: Sequence[int], place: int
) -> tuple[SSAValue, int]:
    """The elements at indices of some axes; the indices' dimensions stand at `place` of the others. Their number."""
    common = b.broadcast_shape(*(shape_of(i) for i in indices))
    columns = [b.reshape(b.broadcast_to(i, common), (*common, 1)) for i in indices]
    vectors, count, rest = b.concatenate(columns, len(common)), len(common), rank_of(x) - len(axes)
    dimensions = GatherDimensions(
        offset_dims=tuple(i if i < place else i + count for i in range(rest)),
        collapsed_slice_dims=tuple(axes),
        start_index_map=tuple(axes),
        index_vector_dim=count,
    )
    sizes = [1 if i in axes else s for i, s in enumerate(shape_of(x))]
    return b.emit(hlo.GatherOp, x, vectors, dimension_numbers=dimensions, slice_sizes=sizes), count


def _with_new(plan: _Plan) -> list[Any]:
    found = list(plan.selectors)
    for place in plan.new:
        found.insert(place, None)
    return found


def _shape_result(b: Builder, x: SSAValue, plan: _Plan, gone: Sequence[int]) -> SSAValue:
    """Without the dimensions of integers, with the new ones."""
    sizes = iter(shape_of(x))
    kept: list[Size] = []
    axis = 0
    for selector in _with_new(plan):
        if selector is None:
            kept.append(1)
            continue
        size = next(sizes)
        kept += [] if axis in gone else [size]
        axis += 1
    return b.reshape(x, kept)


def _widen(
    b: Builder, x: SSAValue, plan: _Plan, chosen: Sequence[int], place: int, count: int, front: bool
) -> SSAValue:
    """A gathered tensor with the new dimensions of size 1."""
    shape = list(shape_of(x))
    indexed, others = shape[place : place + count], iter(shape[:place] + shape[place + count :])
    kept: list[Size] = list(indexed) if front else []
    placed, axis = front, 0
    for selector in _with_new(plan):
        if selector is None:
            kept.append(1)
            continue
        if axis not in chosen:
            kept.append(next(others))
        elif not placed:
            kept += indexed
            placed = True
        axis += 1
    return b.reshape(x, kept)


@operation
def take(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tensor:
    """Elements (slices along an axis) at indices."""
    from gcomp.ops.movement import ravel

    b = builder_of(x, indices)
    _, (value, places) = lift_operands(ravel(x) if axis is None else x, indices, b=b)
    require("an index", dtype_text(places.type), 1)
    place = 0 if axis is None else axis_of(axis, rank_of(value))
    return Tensor(b, gathering.take(b, value, _index_tensor(b, places, shape_of(value)[place]), place))


@operation
def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int) -> Tensor:
    """Of each line along an axis the elements at that line's indices, such as `argsort` gives."""
    b = builder_of(x, indices)
    _, (value, places) = lift_operands(x, indices, b=b)
    require("an index", dtype_text(places.type), 1)
    place = axis_of(axis, rank_of(value))
    shape = [*shape_of(value)]
    shape[place] = shape_of(places)[place]
    places = b.broadcast_to(_index_tensor(b, places, shape_of(value)[place]), shape)
    return Tensor(b, gathering.take_along(b, value, places, place))


@operation
def dynamic_slice(x: ArrayLike, starts: Sequence[ArrayLike], sizes: Sequence[Size]) -> Tensor:
    """A part of given sizes from starts that may be traced; starts are moved so that the part fits."""
    b = builder_of(x, *starts)
    _, (value, *places) = lift_operands(x, *starts, b=b)
    return Tensor(
        b, b.emit(hlo.DynamicSliceOp, value, *(cast_value(b, p, "i64") for p in places), slice_sizes=list(sizes))
    )


# ---- changed copies -------------------------------------------------------------------------------------------------

_UPDATES: dict[str, type[GraphOp] | None] = {
    "set": None, "add": hlo.AddOp, "multiply": hlo.MultiplyOp, "min": hlo.MinimumOp, "max": hlo.MaximumOp,
}  # fmt: skip


@operation
def update(x: ArrayLike, index: Index, value: ArrayLike, *, how: str = "set") -> Tensor:
    """A copy of x in which `x[index]` is replaced by a value, or combined with it: what `x.at[index]` does.

    Where an index names an element more than once, updates apply one after the other.
    """
    parts = list(cast("Sequence[Any]", index)) if isinstance(index, tuple) else [index]
    b = builder_of(x, value, *tensors_in(parts))
    _, (whole, part) = lift_operands(x, value, b=b)
    part = cast_value(b, part, dtype_text(whole.type))
    shape, count = shape_of(whole), dims.product(shape_of(whole))
    # The places of the elements, cut in the same way as x would be.
    places = _index(b, b.reshape(b.iota((count,), 0), shape), parts)
    part = b.reshape(b.broadcast_to(part, shape_of(places)), (dims.product(shape_of(places)),))
    rows = b.reshape(places, (dims.product(shape_of(places)), 1))
    scalar, op = tensor((), element_of(whole)), _UPDATES[how]
    body = b.region([scalar, scalar], lambda args: [args[1] if op is None else b.emit(op, args[0], args[1])])
    found = b.emit(
        hlo.ScatterOp, b.reshape(whole, (count,)), rows, part, regions=[body],
        scatter_dimension_numbers=ScatterDimensions((), (0,), (), (), (0,), 1),
        indices_are_sorted=False, unique_indices=False,
    )  # fmt: skip
    return Tensor(b, b.reshape(found, shape))


__all__ = ["dynamic_slice", "getitem", "take", "take_along_axis", "update"]
