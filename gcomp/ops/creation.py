"""Tensors from nothing: constants, ranges, and the like."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gcomp.dims import Dim, Size
from gcomp.dtypes import dtype_of
from gcomp.errors import UsageError
from gcomp.ir.types import dtype_text, shape_of
from gcomp.ops.movement import Shape, shape_from, size_from
from gcomp.tensors.lifting import builder_of, cast_value, lift_operands
from gcomp.tensors.operation import operation
from gcomp.tensors.promotion import DTypeLike, default_of, element_text, kind_of
from gcomp.tensors.tensor import ArrayLike, Tensor


@operation
def asarray(x: ArrayLike, dtype: DTypeLike = None) -> Tensor:
    """A tensor of an array, a number, or (nested) lists of numbers and tensors."""
    b, (value,) = lift_operands(x)
    return Tensor(b, value if dtype is None else cast_value(b, value, element_text(dtype)))


@operation
def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike = None) -> Tensor:
    """A tensor of one element again and again."""
    b, (value,) = lift_operands(fill_value)
    value = value if dtype is None else cast_value(b, value, element_text(dtype))
    return Tensor(b, b.broadcast_to(value, shape_from(shape)))


@operation
def zeros(shape: Shape, dtype: DTypeLike = float) -> Tensor:
    """A tensor of zeros; float64 by default, as in NumPy."""
    b = builder_of()
    return Tensor(b, b.full(shape_from(shape), 0, element_text(dtype)))


@operation
def ones(shape: Shape, dtype: DTypeLike = float) -> Tensor:
    """A tensor of ones; float64 by default, as in NumPy."""
    b = builder_of()
    return Tensor(b, b.full(shape_from(shape), 1, element_text(dtype)))


def _like(name: str, element: int) -> Callable[..., Tensor]:
    def run(x: ArrayLike, dtype: DTypeLike = None) -> Tensor:
        b, (value,) = lift_operands(x)
        text = dtype_text(value.type) if dtype is None else element_text(dtype)
        return Tensor(b, b.full(shape_of(value), element, text))

    run.__name__, run.__doc__ = name, f"A tensor of {name.partition('_')[0]} in the shape and type of x."
    return operation(run)


zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)


@operation
def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike = None) -> Tensor:
    """A tensor of one element in the shape and type of x."""
    b = builder_of(x, fill_value)
    _, (value, filling) = lift_operands(x, fill_value, b=b)
    filling = cast_value(b, filling, dtype_text(value.type) if dtype is None else element_text(dtype))
    return Tensor(b, b.broadcast_to(filling, shape_of(value)))


@operation
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: DTypeLike = None) -> Tensor:
    """Numbers from start up to stop (not included) by step. Bounds are Python numbers; stop may be a symbolic size."""
    first, last = (0, start) if stop is None else (start, stop)
    bounds: list[Any] = [size_from(v) if isinstance(v, Tensor) else v for v in (first, last, step)]
    b = builder_of()
    if any(isinstance(v, Dim) for v in bounds):
        low, high = size_from(bounds[0]), size_from(bounds[1])
        if bounds[2] != 1:
            raise UsageError("a range with a symbolic bound has the step 1")
        numbers = b.add(b.iota((high - low,), 0), b.dim(low))
        return Tensor(b, numbers if dtype is None else cast_value(b, numbers, element_text(dtype)))
    if bounds[2] == 0:
        raise UsageError("a range cannot go by steps of 0")
    if all(isinstance(v, int) for v in bounds):
        return _integers(bounds[0], bounds[1], bounds[2], dtype)
    text = max((default_of(v) for v in bounds), key=kind_of) if dtype is None else element_text(dtype)
    return Tensor(b, b.constant(np.arange(*bounds, dtype=dtype_of(text))))


def _integers(first: int, last: int, step: int, dtype: DTypeLike) -> Tensor:
    b, count = builder_of(), max(math.ceil((last - first) / step), 0)
    numbers = b.iota((count,), 0)
    if step != 1:
        numbers = b.multiply(numbers, b.full_like(numbers, step))
    if first != 0:
        numbers = b.add(numbers, b.full_like(numbers, first))
    return Tensor(b, numbers if dtype is None else cast_value(b, numbers, element_text(dtype)))


@operation
def linspace(start: float, stop: float, num: int = 50, *, endpoint: bool = True, dtype: DTypeLike = float) -> Tensor:
    """`num` numbers at equal distances from start to stop."""
    b = builder_of()
    return Tensor(b, b.constant(np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype_of(element_text(dtype)))))


@operation
def eye(rows: Size, columns: Size | None = None, k: int = 0, dtype: DTypeLike = float) -> Tensor:
    """Ones on the k-th diagonal; zeros elsewhere."""
    b = builder_of()
    shape = shape_from((rows, rows if columns is None else columns))
    row = b.add(b.iota(shape, 0), b.full(shape, k, "i64"))
    return Tensor(b, cast_value(b, b.compare(row, b.iota(shape, 1), "EQ"), element_text(dtype)))


@operation
def one_hot(x: ArrayLike, num_classes: int, dtype: DTypeLike = np.float32) -> Tensor:
    """For each class a vector of zeros with a one at its place; of a class out of range, zeros."""
    b, (value,) = lift_operands(x)
    shape = (*shape_of(value), num_classes)
    classes = b.broadcast(cast_value(b, value, "i64"), shape, range(len(shape) - 1))
    return Tensor(b, cast_value(b, b.compare(classes, b.iota(shape, len(shape) - 1), "EQ"), element_text(dtype)))


__all__ = ["arange", "asarray", "eye", "full", "full_like", "linspace", "one_hot", "ones", "ones_like", "zeros",
           "zeros_like"]  # fmt: skip
