"""Folding dimensions, and running folds along one. Integers narrower than 64 bits are summed in 64, as in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dtypes import is_complex, is_float
from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, identity
from gcomp.ir.looping import running
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor
from gcomp.tensors.lifting import cast_value, lift_operands, truth
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import DTypeLike, element_text, kind_of, require, sum_type
from gcomp.tensors.tensor import ArrayLike, Tensor

Axes = int | Sequence[int] | None


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front. UsageError where there is none."""
    place = operator.index(axis)
    if not -rank <= place < rank:
        raise UsageError(f"axis {place} is out of bounds for a tensor of rank {rank}")
    return place % rank


def axes_of(axis: Axes, rank: int) -> list[int]:
    """The axes that `axis` names; all for None."""
    if axis is None:
        return list(range(rank))
    found = [axis_of(a, rank) for a in (axis if isinstance(axis, Sequence) else (axis,))]
    if len(set(found)) != len(found):
        raise UsageError(f"the axes {list(found)} name one axis twice")
    return sorted(found)


def _sum_like(name: str, op: type[GraphOp], doc: str) -> Callable[..., Tensor]:
    def run(x: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, *, keepdims: bool = False) -> Tensor:
        b, (value,) = lift_operands(x)
        text = sum_type(dtype_text(value.type)) if dtype is None else element_text(dtype)
        value = cast_value(b, value, text)
        return Tensor(b, b.reduce(op, value, axes_of(axis, rank_of(value)), keepdims=keepdims))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


sum = _sum_like("sum", hlo.AddOp, "The sum over axes (all by default); 0 of none.")
prod = _sum_like("prod", hlo.MultiplyOp, "The product over axes (all by default); 1 of none.")


def _extremum(name: str, op: type[GraphOp], doc: str) -> Callable[..., Tensor]:
    def run(x: ArrayLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        b, (value,) = lift_operands(x)
        require(name, dtype_text(value.type), 0, 1, 2)
        axes = axes_of(axis, rank_of(value))
        if 0 in [shape_of(value)[a] for a in axes]:
            raise UsageError(f"{name} of no elements has no value", why=f"the shape is {shape_of(value)}")
        return Tensor(b, b.reduce(op, value, axes, keepdims=keepdims))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


max = _extremum("max", hlo.MaximumOp, "The largest element over axes (all by default); NaN where there is one.")
min = _extremum("min", hlo.MinimumOp, "The smallest element over axes (all by default); NaN where there is one.")


def _truths(name: str, op: type[GraphOp], doc: str) -> Callable[..., Tensor]:
    def run(x: ArrayLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        b, (value,) = lift_operands(x)
        return Tensor(b, b.reduce(op, truth(b, value), axes_of(axis, rank_of(value)), keepdims=keepdims))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


any = _truths("any", hlo.OrOp, "Whether some element over axes (all by default) is not 0.")
all = _truths("all", hlo.AndOp, "Whether no element over axes (all by default) is 0.")


@operation
def count_nonzero(x: ArrayLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """How many elements over axes (all by default) are not 0."""
    b, (value,) = lift_operands(x)
    ones = b.convert(truth(b, value), "i64")
    return Tensor(b, b.reduce(hlo.AddOp, ones, axes_of(axis, rank_of(value)), keepdims=keepdims))


# ---- means ----------------------------------------------------------------------------------------------------------


def _as_mean(b: Builder, value: SSAValue) -> tuple[SSAValue, str]:
    """A value in the type in which means are computed (narrow floats in f32), and the type of the mean."""
    text = dtype_text(value.type)
    if kind_of(text) < 2:
        return cast_value(b, value, "f64"), "f64"
    return b.widen(value), text


@operation
def mean(x: ArrayLike, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The mean over axes (all by default): integers in float64; narrow floats are summed in float32."""
    b, (value,) = lift_operands(x)
    wide, text = _as_mean(b, value)
    return Tensor(b, cast_value(b, b.mean(wide, axes_of(axis, rank_of(value)), keepdims=keepdims), text))


def _variance(x: ArrayLike, axis: Axes, ddof: float, keepdims: bool) -> tuple[Builder, SSAValue, str]:
    b, (value,) = lift_operands(x)
    wide, text = _as_mean(b, value)
    axes = axes_of(axis, rank_of(value))
    centered = b.subtract(wide, b.mean(wide, axes, keepdims=True))
    if is_complex(text):
        parts = [b.emit(op, centered) for op in (hlo.RealOp, hlo.ImagOp)]
        squares = b.add(*(b.multiply(p, p) for p in parts))
        text = dtype_text(squares.type)
    else:
        squares = b.multiply(centered, centered)
    total = b.reduce(hlo.AddOp, squares, axes, keepdims=keepdims)
    count = b.convert(b.dim(dims.product([shape_of(value)[a] for a in axes])), element_of(total))
    return b, b.divide(total, b.subtract(count, b.scalar_like(total, ddof))), text


@operation
def var(x: ArrayLike, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The variance over axes (all by default): squares of distances from the mean, summed, by the count less ddof."""
    b, found, text = _variance(x, axis, ddof, keepdims)
    return Tensor(b, cast_value(b, found, text))


@operation
def std(x: ArrayLike, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The square root of the variance."""
    b, found, text = _variance(x, axis, ddof, keepdims)
    return Tensor(b, cast_value(b, b.emit(hlo.SqrtOp, found), text))


# ---- places ---------------------------------------------------------------------------------------------------------


def _place(name: str, direction: str, doc: str) -> Callable[..., Tensor]:
    def run(x: ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        b, (value,) = lift_operands(x)
        require(name, dtype_text(value.type), 0, 1, 2)
        rank = rank_of(value)
        if axis is None:
            value = b.reshape(value, (dims.product(shape_of(value)),))
        place = 0 if axis is None else axis_of(axis, rank)
        if shape_of(value)[place] == 0:
            raise UsageError(f"{name} of no elements has no value", why=f"the shape is {shape_of(value)}")
        kept = [1] * rank if axis is None else [1 if i == place else s for i, s in enumerate(shape_of(value))]
        found = _first(b, value, place, direction)
        return Tensor(b, b.reshape(found, kept) if keepdims else found)

    run.__name__, run.__doc__ = name, doc
    return operation(run)


def _first(b: Builder, x: SSAValue, axis: int, direction: str) -> SSAValue:
    """The first index of the greatest (or least) along an axis; of the first NaN where there is one."""
    text, places = dtype_text(x.type), b.iota(shape_of(x), axis)
    worst = b.full((), identity(hlo.MaximumOp if direction == "GT" else hlo.MinimumOp, text), text)
    types = [tensor((), text), tensor((), "i64")]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        value, place, other, other_place = args
        better = b.compare(value, other, direction)
        same = b.compare(value, other, "EQ")
        if is_float(text):
            nan, other_nan = b.compare(value, value, "NE"), b.compare(other, other, "NE")
            better = b.select(nan, b.emit(hlo.NotOp, other_nan), better)
            same = b.emit(hlo.OrOp, same, b.emit(hlo.AndOp, nan, other_nan))
        own = b.emit(hlo.OrOp, better, b.emit(hlo.AndOp, same, b.compare(place, other_place, "LT")))
        return [b.select(own, value, other), b.select(own, place, other_place)]

    # The start is as bad as any element, and stands behind all of them.
    region, last = b.region([*types, *types], body), b.full((), 2**63 - 1, "i64")
    return b.emit_all(hlo.ReduceOp, x, places, worst, last, regions=[region], dimensions=[axis])[1]


argmax = _place("argmax", "GT", "The first index of the largest element along an axis, or among all; NaN is largest.")
argmin = _place("argmin", "LT", "The first index of the smallest element along an axis, or among all; NaN is smallest.")


# ---- running folds --------------------------------------------------------------------------------------------------


def _running(name: str, op: type[GraphOp], doc: str) -> Callable[..., Tensor]:
    def run(x: ArrayLike, axis: int | None = None, *, reverse: bool = False) -> Tensor:
        b, (value,) = lift_operands(x)
        value = cast_value(b, value, sum_type(dtype_text(value.type)))
        if axis is None:
            value = b.reshape(value, (dims.product(shape_of(value)),))
        place = 0 if axis is None else axis_of(axis, rank_of(value))
        unit = b.scalar_like(value, identity(op, dtype_text(value.type)))
        return Tensor(b, running(b, value, place, lambda p, q: b.emit(op, p, q), unit, reverse=reverse))

    run.__name__, run.__doc__ = name, doc
    return operation(run)


cumsum = _running("cumsum", hlo.AddOp, "The sum of all elements up to each (from each on: reverse) along an axis.")
cumprod = _running("cumprod", hlo.MultiplyOp, "The product of all elements up to each (from each on: reverse).")


__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "max", "mean", "min", "prod",
           "std", "sum", "var"]  # fmt: skip
