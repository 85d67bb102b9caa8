"""Ops whose positions are data: slices, gather and scatter.

Slices and gather clamp the start so that the whole slice is inside; scatter skips each update element that is
outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import Array, DType
from gcomp.reference.numpy.movement import sizes
from gcomp.reference.numpy.reduction import turns

# Far outside every tensor, and far from overflow when window offsets are added.
_FAR = 1 << 62


def dynamic_slice(operand: Array, start_indices: Sequence[Array], *, slice_sizes: Sequence[int]) -> Array:
    """A slice of static size at the clamped start; one rank-0 start per dimension."""
    return np.array(operand[_clamp(start_indices, slice_sizes, operand.shape)])


def dynamic_update_slice(operand: Array, update: Array, start_indices: Sequence[Array]) -> Array:
    """`operand` with `update` written at the clamped start."""
    result = np.array(operand)
    result[_clamp(start_indices, update.shape, operand.shape)] = update
    return result


def _clamp(start_indices: Sequence[Array], slice_sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    starts = [
        min(max(int(start), 0), n - size) for start, size, n in zip(start_indices, slice_sizes, shape, strict=True)
    ]
    return tuple(slice(start, start + size) for start, size in zip(starts, slice_sizes, strict=True))


def gather(
    operand: Array,
    start_indices: Array,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int] = (),
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    start_index_map: Sequence[int],
    index_vector_dim: int,
    slice_sizes: Sequence[int],
    indices_are_sorted: bool = False,
) -> Array:
    """Slices of `operand` at the starts along `index_vector_dim` of `start_indices`, each start clamped.

    The batch dimensions of the result are those of `start_indices`, in order, at the places that
    `offset_dims` leaves. `indices_are_sorted` changes nothing.
    """
    del indices_are_sorted
    limits = [n - size for n, size in zip(operand.shape, slice_sizes, strict=True)]
    starts = _start_vectors(start_indices, index_vector_dim)
    batch = starts.shape[:-1]
    dropped = {*collapsed_slice_dims, *operand_batching_dims}
    offsets = [size for d, size in enumerate(slice_sizes) if d not in dropped]
    batched = dict(zip(operand_batching_dims, start_indices_batching_dims, strict=True))
    rank = len(batch) + len(offsets)
    index: list[Array] = []
    offset = 0
    for d in range(operand.ndim):
        position = np.zeros((1,) * rank, np.int64)
        if d in start_index_map:
            start = np.clip(starts[..., list(start_index_map).index(d)], 0, limits[d])
            position = position + start.reshape(batch + (1,) * len(offsets))
        if d in batched:
            position = position + _along(batch, _batch_axis(batched[d], index_vector_dim), rank)
        if d not in dropped:
            position = position + _along(offsets, offset, rank, len(batch))
            offset += 1
        index.append(position)
    values = operand[tuple(np.broadcast_to(i, (*batch, *offsets)) for i in index)] if index else operand
    values = np.broadcast_to(values, (*batch, *offsets))
    return np.array(np.moveaxis(values, range(len(batch), rank), list(offset_dims)))


def dynamic_gather(
    operand: Array,
    start_indices: Array,
    slice_sizes: Array,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int] = (),
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    start_index_map: Sequence[int],
    index_vector_dim: int,
    indices_are_sorted: bool = False,
) -> Array:
    """`gather` with the slice sizes as a one-dimensional tensor.

    Raises ValueError for slices that do not fit into the operand, or are not 1 where their dimension is dropped.
    """
    extents = sizes(slice_sizes)
    for d, (size, extent) in enumerate(zip(operand.shape, extents, strict=True)):
        if extent > size or (d in (*collapsed_slice_dims, *operand_batching_dims) and extent != 1):
            raise ValueError(f"slices of {extent} along dimension {d}, which has {size}")
    return gather(
        operand,
        start_indices,
        offset_dims=offset_dims,
        collapsed_slice_dims=collapsed_slice_dims,
        operand_batching_dims=operand_batching_dims,
        start_indices_batching_dims=start_indices_batching_dims,
        start_index_map=start_index_map,
        index_vector_dim=index_vector_dim,
        slice_sizes=extents,
        indices_are_sorted=indices_are_sorted,
    )


def scatter(
    inputs: Sequence[Array],
    scatter_indices: Array,
    updates: Sequence[Array],
    *,
    update_window_dims: Sequence[int] = (),
    inserted_window_dims: Sequence[int] = (),
    input_batching_dims: Sequence[int] = (),
    scatter_indices_batching_dims: Sequence[int] = (),
    scatter_dims_to_operand_dims: Sequence[int] = (),
    index_vector_dim: int,
    update_computation: Callable[..., Sequence[Array]],
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    dtypes: Sequence[DType] | None = None,
) -> list[Array]:
    """N inputs with update elements combined into them in row-major order of the update index.

    `update_computation` takes N current values, then N updates, all of one shape, elementwise. An update
    element whose target is out of bounds is skipped, alone. `dtypes` are the element types of its results
    (those of `inputs` by default). The two promises about the indices change nothing.
    """
    del indices_are_sorted, unique_indices
    shape, update_shape = inputs[0].shape, updates[0].shape
    starts = _start_vectors(scatter_indices, index_vector_dim)
    batched = dict(zip(input_batching_dims, scatter_indices_batching_dims, strict=True))
    scatter_dims = [d for d in range(len(update_shape)) if d not in set(update_window_dims)]
    aligned = [1] * len(update_shape)
    for d in scatter_dims:
        aligned[d] = update_shape[d]
    windows = iter(update_window_dims)
    valid = np.ones(update_shape, np.bool_)
    flat = np.zeros(update_shape, np.int64)
    for d, size in enumerate(shape):
        position = np.zeros((1,) * len(update_shape), np.int64)
        if d in scatter_dims_to_operand_dims:
            start = starts[..., list(scatter_dims_to_operand_dims).index(d)]
            position = position + start.reshape(aligned)
        if d in batched:
            axis = scatter_dims[_batch_axis(batched[d], index_vector_dim)]
            position = position + _along(update_shape, axis, len(update_shape))
        if d not in {*inserted_window_dims, *input_batching_dims}:
            position = position + _along(update_shape, next(windows), len(update_shape))
        valid &= (position >= 0) & (position < size)
        flat = flat * size + np.clip(position, 0, max(size - 1, 0))
    return _combine(inputs, updates, flat.reshape(-1), valid.reshape(-1), update_computation, dtypes)


def _combine(
    inputs: Sequence[Array],
    updates: Sequence[Array],
    targets: Array,
    valid: Array,
    update_computation: Callable[..., Sequence[Array]],
    dtypes: Sequence[DType] | None,
) -> list[Array]:
    kinds = list(dtypes) if dtypes is not None else [x.dtype for x in inputs]
    results = [convert(x, dtype=kind).reshape(-1) for x, kind in zip(inputs, kinds, strict=True)]
    values = [convert(x, dtype=kind).reshape(-1) for x, kind in zip(updates, kinds, strict=True)]
    for turn in turns(targets, valid):
        at = targets[turn]
        combined = update_computation(*(result[at] for result in results), *(value[turn] for value in values))
        for result, value in zip(results, combined, strict=True):
            result[at] = value
    return [result.reshape(inputs[0].shape) for result in results]


def _start_vectors(indices: Array, index_vector_dim: int) -> Array:
    """Indices as int64, the index vector last; values far beyond any tensor are pulled nearer."""
    if index_vector_dim == indices.ndim:
        indices = indices[..., None]
    vectors = np.moveaxis(indices, index_vector_dim, -1)
    if vectors.dtype == np.uint64:
        vectors = np.minimum(vectors, np.uint64(_FAR))
    return np.clip(vectors.astype(np.int64), -_FAR, _FAR)


def _batch_axis(indices_axis: int, index_vector_dim: int) -> int:
    """Which batch dimension a dimension of the indices is."""
    return indices_axis - (indices_axis > index_vector_dim)


def _along(extents: Sequence[int], axis: int, rank: int, skipped: int = 0) -> Array:
    """0, 1, 2, ... along dimension `skipped + axis` of a rank-`rank` shape, ones elsewhere."""
    aligned = [1] * rank
    aligned[skipped + axis] = extents[axis]
    return np.arange(extents[axis], dtype=np.int64).reshape(aligned)
