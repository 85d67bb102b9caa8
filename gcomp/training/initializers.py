"""Initializers: first values of parameters, from keys of `gcomp.ops.random`, distributed as by `torch.nn.init`.

The fans of a parameter of shape (outputs, inputs, ...) are its inputs and outputs, times the elements of what follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gcomp import ops
from gcomp.errors import UsageError
from gcomp.tensors.promotion import DTypeLike
from gcomp.tensors.tensor import ArrayLike, Tensor

Shape = Sequence[int]


def zeros(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32") -> Tensor:
    """Zeros."""
    return ops.zeros(shape, dtype)


def constant(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, value: float = 0.0) -> Tensor:
    """One value."""
    return ops.full(shape, value, dtype)


def uniform(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Numbers in [low, high)."""
    return ops.random.uniform(key, shape, low, high, dtype)


def normal(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normally distributed numbers."""
    return ops.random.normal(key, shape, dtype=dtype) * std + mean


def truncated_normal(
    key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, mean: float = 0.0, std: float = 1.0, low: float = -2.0,
    high: float = 2.0,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers that are in [low, high], by the quantiles that lie there."""
    first, last = (math.erf((end - mean) / std / math.sqrt(2)) for end in (low, high))
    drawn = ops.erfinv(ops.random.uniform(key, shape, first, last, dtype)) * (std * math.sqrt(2)) + mean
    return ops.clip(drawn, low, high)


def glorot_uniform(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, gain: float = 1.0) -> Tensor:
    """Uniform with the variance 2 / (fan in + fan out) (Glorot and Bengio 2010). As `xavier_uniform_`."""
    bound = gain * math.sqrt(6 / sum(fans(shape)))
    return uniform(key, shape, dtype, low=-bound, high=bound)


def glorot_normal(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, gain: float = 1.0) -> Tensor:
    """Normal with the variance 2 / (fan in + fan out). As `xavier_normal_`."""
    return normal(key, shape, dtype, std=gain * math.sqrt(2 / sum(fans(shape))))


def kaiming_uniform(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, slope: float = 0.0) -> Tensor:
    """Uniform with the variance 2 / fan in, for relu of a slope (He et al. 2015). As `kaiming_uniform_`."""
    bound = math.sqrt(6 / (1 + slope**2) / fans(shape)[0])
    return uniform(key, shape, dtype, low=-bound, high=bound)


def kaiming_normal(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, slope: float = 0.0) -> Tensor:
    """Normal with the variance 2 / fan in, for relu of a slope. As `kaiming_normal_`."""
    return normal(key, shape, dtype, std=math.sqrt(2 / (1 + slope**2) / fans(shape)[0]))


def orthogonal(key: ArrayLike, shape: Shape, dtype: DTypeLike = "f32", *, gain: float = 1.0) -> Tensor:
    """Orthonormal rows or columns, whichever are fewer, of the matrix (first dimension, all others). As `orthogonal_`.

    By Gram and Schmidt, each vector twice, which is enough (Giraud, Langou and Rozloznik 2005).
    """
    fans(shape)
    rows, columns = shape[0], math.prod(shape[1:])
    count, length = min(rows, columns), max(rows, columns)
    if not count:
        return ops.zeros(shape, dtype)
    drawn = normal(key, (count, length), np.float64)

    def orthogonalized(i: Tensor, basis: Tensor) -> Tensor:
        vector = ops.dynamic_slice(drawn, [i, 0], (1, length)).reshape((length,))
        for _ in range(2):
            vector = vector - (basis @ vector) @ basis
        vector = vector / ops.sqrt(ops.square(vector).sum())
        return ops.where((ops.arange(count) == i).reshape((count, 1)), vector.reshape((1, length)), basis)

    basis = ops.fori_loop(0, count, orthogonalized, ops.zeros((count, length), np.float64))
    matrix = basis if rows <= columns else ops.transpose(basis)
    return ops.astype(matrix * gain, dtype).reshape(tuple(shape))


def fans(shape: Shape) -> tuple[int, int]:
    """How many inputs and outputs an element of the results, or of what comes in, has. UsageError below rank 2."""
    if len(shape) < 2:
        raise UsageError(f"a parameter of shape {tuple(shape)} has no fans", why="that takes two dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field
