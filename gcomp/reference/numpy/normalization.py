"""Batch normalization: inference, training and gradient, by the decompositions of the specification.

Evaluated in double precision throughout; each output is rounded once. `feature_index` is the dimension that
keeps its own statistics.
"""

from __future__ import annotations

import numpy as np

from gcomp.reference.numpy.dtypes import Array
from gcomp.reference.numpy.rounding import narrow, quiet, widen


@quiet
def batch_norm_inference(
    operand: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> Array:
    """scale * (operand - mean) / sqrt(variance + epsilon) + offset."""
    x, wide_scale, wide_offset = widen(operand), widen(scale), widen(offset)
    shift = _constant(epsilon, operand)
    wide = _normalize(x, wide_scale, wide_offset, widen(mean), widen(variance), shift, feature_index)
    return narrow(wide, operand.dtype)


@quiet
def batch_norm_training(
    operand: Array, scale: Array, offset: Array, *, epsilon: float, feature_index: int
) -> tuple[Array, Array, Array]:
    """(output, batch_mean, batch_var) with the statistics of `operand`; the variance divides by the count."""
    x = widen(operand)
    mean = _mean(x, feature_index)
    centered = x - _along(mean, x, feature_index)
    variance = _mean(centered * centered, feature_index)
    output = _normalize(x, widen(scale), widen(offset), mean, variance, _constant(epsilon, operand), feature_index)
    return narrow(output, operand.dtype), narrow(mean, operand.dtype), narrow(variance, operand.dtype)


@quiet
def batch_norm_grad(
    operand: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    grad_output: Array,
    *,
    epsilon: float,
    feature_index: int,
) -> tuple[Array, Array, Array]:
    """(grad_operand, grad_scale, grad_offset) of `batch_norm_training` for the gradient of its first output."""
    x, grad = widen(operand), widen(grad_output)
    centered = x - _along(widen(mean), x, feature_index)
    shifted = _along(widen(variance), x, feature_index) + _constant(epsilon, operand)
    deviation = np.sqrt(shifted)
    count = float(_count(x, feature_index))
    grad_sum = _sum(grad, feature_index)
    grad_scale = _sum(grad * (centered / deviation), feature_index)
    projected = _along(_sum(grad * centered, feature_index), x, feature_index) * centered / shifted
    inner = grad * count - _along(grad_sum, x, feature_index) - projected
    grad_operand = _along(widen(scale), x, feature_index) / deviation / count * inner
    dtype = operand.dtype
    return narrow(grad_operand, dtype), narrow(grad_scale, dtype), narrow(grad_sum, dtype)


def _constant(epsilon: float, operand: Array) -> float:
    """`epsilon` as a constant of the operand's element type, in double."""
    return float(narrow(np.array(epsilon, np.float64), operand.dtype))


def _normalize(
    x: Array, scale: Array, offset: Array, mean: Array, variance: Array, epsilon: float, feature: int
) -> Array:
    centered = x - _along(mean, x, feature)
    normalized = centered / np.sqrt(_along(variance, x, feature) + epsilon)
    return np.asarray(_along(scale, x, feature) * normalized + _along(offset, x, feature))


def _along(vector: Array, x: Array, feature: int) -> Array:
    return vector.reshape([-1 if d == feature else 1 for d in range(x.ndim)])


def _count(x: Array, feature: int) -> int:
    return int(np.prod([n for d, n in enumerate(x.shape) if d != feature], dtype=np.int64))


def _sum(x: Array, feature: int) -> Array:
    return np.asarray(x.sum(axis=tuple(d for d in range(x.ndim) if d != feature)))


def _mean(x: Array, feature: int) -> Array:
    return np.asarray(_sum(x, feature) / float(_count(x, feature)))
