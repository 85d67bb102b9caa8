"""Ops that move elements: their results hold the operands' bits, NaN payloads included."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np

from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import Array, DType


def broadcast_in_dim(operand: Array, *, broadcast_dimensions: Sequence[int], shape: Sequence[int]) -> Array:
    """`operand` with its dimension d placed at `broadcast_dimensions[d]` of `shape`; size 1 is repeated."""
    # The dimensions may come in any order; in ascending order they are a reshape with ones.
    order = sorted(range(operand.ndim), key=lambda d: broadcast_dimensions[d])
    aligned = [1] * len(shape)
    for d in order:
        aligned[broadcast_dimensions[d]] = operand.shape[d]
    return np.array(np.broadcast_to(np.transpose(operand, order).reshape(aligned), tuple(shape)))


def dynamic_broadcast_in_dim(
    operand: Array,
    output_dimensions: Array,
    *,
    broadcast_dimensions: Sequence[int],
    known_expanding_dimensions: Sequence[int] = (),
    known_nonexpanding_dimensions: Sequence[int] = (),
) -> Array:
    """`broadcast_in_dim` to the shape in `output_dimensions`; the two hints change nothing."""
    del known_expanding_dimensions, known_nonexpanding_dimensions
    return broadcast_in_dim(operand, broadcast_dimensions=broadcast_dimensions, shape=sizes(output_dimensions))


def concatenate(inputs: Sequence[Array], *, dimension: int) -> Array:
    """The inputs one after the other along `dimension`."""
    return np.concatenate(list(inputs), axis=dimension, dtype=inputs[0].dtype)


def iota(*, iota_dimension: int, shape: Sequence[int], dtype: DType) -> Array:
    """The index along `iota_dimension`, converted to `dtype`."""
    aligned = [1] * len(shape)
    aligned[iota_dimension] = shape[iota_dimension]
    counts = convert(np.arange(shape[iota_dimension], dtype=np.int64), dtype=dtype)
    return np.array(np.broadcast_to(counts.reshape(aligned), tuple(shape)))


def dynamic_iota(output_shape: Array, *, iota_dimension: int, dtype: DType) -> Array:
    """`iota` of the shape in `output_shape`."""
    return iota(iota_dimension=iota_dimension, shape=sizes(output_shape), dtype=dtype)


def pad(
    operand: Array,
    padding_value: Array,
    *,
    edge_padding_low: Sequence[int],
    edge_padding_high: Sequence[int],
    interior_padding: Sequence[int],
) -> Array:
    """`operand` with `padding_value` at its edges and between its elements.

    Interior padding comes first; negative edges then remove elements, padding included.
    """
    low, high = list(edge_padding_low), list(edge_padding_high)
    steps = [interior + 1 for interior in interior_padding]
    spans = [max(n - 1, 0) * step + min(n, 1) for n, step in zip(operand.shape, steps, strict=True)]
    shape = [max(before + span + after, 0) for before, span, after in zip(low, spans, high, strict=True)]
    result = np.full(shape, padding_value, operand.dtype)
    source: list[builtins.slice] = []
    target: list[builtins.slice] = []
    for n, step, start, size in zip(operand.shape, steps, low, shape, strict=True):
        first = max(0, -(start // step))
        last = min(n, -((start - size) // step))
        count = max(last - first, 0)
        at = start + first * step
        source.append(builtins.slice(first, first + count))
        target.append(builtins.slice(at, at + count * step, step) if count else builtins.slice(0, 0))
    result[tuple(target)] = operand[tuple(source)]
    return result


def dynamic_pad(
    operand: Array,
    padding_value: Array,
    edge_padding_low: Array,
    edge_padding_high: Array,
    interior_padding: Array,
) -> Array:
    """`pad` with the amounts as one-dimensional tensors. ValueError for a negative interior padding."""
    if any(gap < 0 for gap in sizes(interior_padding)):
        raise ValueError(f"interior padding {sizes(interior_padding)} is negative")
    return pad(
        operand,
        padding_value,
        edge_padding_low=sizes(edge_padding_low),
        edge_padding_high=sizes(edge_padding_high),
        interior_padding=sizes(interior_padding),
    )


def reshape(operand: Array, *, shape: Sequence[int]) -> Array:
    """The elements in row-major order in another shape of equal size."""
    return np.array(operand).reshape(tuple(shape))


def dynamic_reshape(operand: Array, output_shape: Array) -> Array:
    """`reshape` to the shape in `output_shape`. ValueError for a negative size."""
    if any(size < 0 for size in sizes(output_shape)):
        raise ValueError(f"the size {min(sizes(output_shape))} is negative")
    return reshape(operand, shape=sizes(output_shape))


def reverse(operand: Array, *, dimensions: Sequence[int]) -> Array:
    """The elements in opposite order along each of `dimensions`."""
    return np.array(np.flip(operand, tuple(dimensions)))


def slice(
    operand: Array, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int]
) -> Array:
    """`operand[start:limit:stride]` in each dimension."""
    bounds = zip(start_indices, limit_indices, strides, strict=True)
    return np.array(operand[tuple(builtins.slice(*bound) for bound in bounds)])


def real_dynamic_slice(operand: Array, start_indices: Array, limit_indices: Array, strides: Array) -> Array:
    """`slice` with the bounds as one-dimensional tensors. ValueError for bounds that no slice has."""
    starts, limits, steps = sizes(start_indices), sizes(limit_indices), sizes(strides)
    for size, start, limit, step in zip(operand.shape, starts, limits, steps, strict=True):
        if not 0 <= start <= limit <= size or step < 1:
            raise ValueError(f"[{start}:{limit}:{step}] is no slice of {size} elements")
    return slice(operand, start_indices=starts, limit_indices=limits, strides=steps)


def transpose(operand: Array, *, permutation: Sequence[int]) -> Array:
    """Dimension d of the result is dimension `permutation[d]` of the operand."""
    return np.array(np.transpose(operand, tuple(permutation)))


def get_dimension_size(operand: Array, *, dimension: int) -> Array:
    """The size of `dimension` as an i32 of rank 0."""
    return np.array(operand.shape[dimension], np.int32)


def sizes(values: Array) -> list[int]:
    """The elements of a one-dimensional tensor of sizes as Python integers."""
    return [int(v) for v in np.asarray(values).reshape(-1)]
