"""Order."""

from __future__ import annotations

from gcomp import dims
from gcomp.errors import UsageError
from gcomp.ir import gathering
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, rank_of, shape_of
from gcomp.ops.reduction import axis_of
from gcomp.tensors.lifting import lift_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import require
from gcomp.tensors.tensor import ArrayLike, Tensor


def _sort(x: ArrayLike, axis: int | None, descending: bool) -> tuple[Builder, Tensor, Tensor]:
    b, (value,) = lift_operands(x)
    require("sort", dtype_text(value.type), 0, 1, 2)
    if axis is None:
        value = b.reshape(value, (dims.product(shape_of(value)),))
    place = axis_of(-1 if axis is None else axis, rank_of(value))
    values, order = gathering.sort_along(b, value, place, descending=descending)
    return b, Tensor(b, values), Tensor(b, order)


@operation
def sort(x: ArrayLike, axis: int | None = -1, *, descending: bool = False) -> Tensor:
    """Sorted stably along an axis (None: all elements); NaN is the greatest."""
    return _sort(x, axis, descending)[1]


@operation
def argsort(x: ArrayLike, axis: int | None = -1, *, descending: bool = False) -> Tensor:
    """The indices that sort stably along an axis (None: all elements)."""
    return _sort(x, axis, descending)[2]


@operation
def top_k(x: ArrayLike, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The k greatest elements along an axis in descending order, and their indices; the first of equals first."""
    b, values, order = _sort(x, axis, True)
    place, size = axis_of(axis, values.ndim), values.shape[axis]
    if k < 0 or (isinstance(size, int) and k > size):
        raise UsageError(f"a dimension of size {size} has no {k} greatest elements")
    return Tensor(b, b.slice_axis(values.value, place, 0, k)), Tensor(b, b.slice_axis(order.value, place, 0, k))


@operation
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left") -> Tensor:
    """Where elements of v would stand in the sorted vector a: how many of it are less (side "right": or equal)."""
    from gcomp.ops.arithmetic import less, less_equal
    from gcomp.ops.movement import expand_dims
    from gcomp.ops.reduction import count_nonzero

    if side not in ("left", "right"):
        raise UsageError(f"there is no side {side!r}", fix='the sides are "left" and "right"')
    before = less if side == "left" else less_equal
    return count_nonzero(before(a, expand_dims(v, -1)), axis=-1)


__all__ = ["argsort", "searchsorted", "sort", "top_k"]
