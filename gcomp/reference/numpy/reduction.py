"""Folds over dimensions and windows, with the combining function given as a callable on arrays.

Such a callable takes arrays of one shape and returns arrays of that shape, elementwise: it is the region of
the op, evaluated over many result elements at once. The order within each result element is fixed: from
`init_values`, in ascending lexicographic order of the index, accumulator first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import Array, DType
from gcomp.reference.numpy.movement import pad

Body = Callable[..., Sequence[Array]]


def reduce(
    inputs: Sequence[Array],
    init_values: Sequence[Array],
    *,
    dimensions: Sequence[int],
    body: Body,
    dtypes: Sequence[DType] | None = None,
) -> list[Array]:
    """Fold N inputs of one shape along `dimensions`.

    `body` takes N accumulators, then N elements. `dtypes` are the element types of its parameters, to which
    inputs and initial values are converted; those of `init_values` by default.
    """
    inputs, inits = _promote(inputs, init_values, dtypes)
    kept = [d for d in range(inputs[0].ndim) if d not in set(dimensions)]
    folded = sorted(dimensions)
    order = kept + folded
    shape = tuple(inputs[0].shape[d] for d in kept)
    count = int(np.prod([inputs[0].shape[d] for d in folded], dtype=np.int64))
    columns = [np.ascontiguousarray(np.transpose(x, order)).reshape(*shape, count) for x in inputs]
    results = [np.array(np.broadcast_to(init, shape)) for init in inits]
    for i in range(count if 0 not in shape else 0):
        results = _arrays(body(*results, *(np.array(column[..., i]) for column in columns)))
    return results


def reduce_window(
    inputs: Sequence[Array],
    init_values: Sequence[Array],
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    base_dilations: Sequence[int] | None = None,
    window_dilations: Sequence[int] | None = None,
    padding: Sequence[Sequence[int]] | None = None,
    body: Body,
    dtypes: Sequence[DType] | None = None,
) -> list[Array]:
    """Fold each window of N inputs of one shape, padded with the initial values.

    `padding` is (low, high) per dimension. Positions that padding or base dilation add hold the initial value
    and take part in the fold.
    """
    inputs, inits = _promote(inputs, init_values, dtypes)
    rank = inputs[0].ndim
    strides = list(window_strides or [1] * rank)
    edges = list(padding or [(0, 0)] * rank)
    padded = [
        pad(
            x,
            init,
            edge_padding_low=[low for low, _ in edges],
            edge_padding_high=[high for _, high in edges],
            interior_padding=[d - 1 for d in base_dilations or [1] * rank],
        )
        for x, init in zip(inputs, inits, strict=True)
    ]
    dilations = list(window_dilations or [1] * rank)
    shape = window_counts(padded[0].shape, window_dimensions, strides, dilations)
    results = [np.array(np.broadcast_to(init, shape)) for init in inits]
    for offset in np.ndindex(*window_dimensions) if 0 not in shape else ():
        at = window_slices(offset, shape, strides, dilations)
        results = _arrays(body(*results, *(np.array(x[at]) for x in padded)))
    return results


def window_counts(
    sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    """The number of window positions in each dimension of an already padded shape."""
    spans = [(w - 1) * d + 1 if w else 0 for w, d in zip(window, dilations, strict=True)]
    return tuple(
        0 if n == 0 or span > n else (n - span) // stride + 1
        for n, span, stride in zip(sizes, spans, strides, strict=True)
    )


def window_slices(
    offset: Sequence[int], counts: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[slice, ...]:
    """The elements at position `offset` of every window, as slices of the padded operand."""
    return tuple(
        slice(o * d, o * d + (n - 1) * s + 1, s) for o, n, s, d in zip(offset, counts, strides, dilations, strict=True)
    )


def select_and_scatter(
    operand: Array,
    source: Array,
    init_value: Array,
    *,
    window_dimensions: Sequence[int] | None = None,
    window_strides: Sequence[int] | None = None,
    padding: Sequence[Sequence[int]] | None = None,
    select: Callable[[Array, Array], Array],
    scatter: Callable[[Array, Array], Array],
    dtype: DType | None = None,
) -> Array:
    """Scatter each element of `source` to the element that `select` chooses in its window of `operand`.

    A window's elements are compared in row-major order, the chosen one first; padding never takes part, and
    the source element of a window without any element is dropped. The result starts as `init_value`; each
    target combines its source elements in row-major order of their index by `scatter(target, source)`.
    `dtype` is that of the result.
    """
    rank = operand.ndim
    window = list(window_dimensions or [1] * rank)
    strides = list(window_strides or [1] * rank)
    lows = [low for low, _ in padding or [(0, 0)] * rank]
    chosen = _choose(operand, source.shape, window, strides, lows, select).reshape(-1)
    dtype = np.dtype(dtype) if dtype is not None else init_value.dtype
    result = np.full(operand.size, convert(init_value, dtype=dtype), dtype)
    values = convert(source, dtype=dtype).reshape(-1)
    for turn in turns(chosen, chosen >= 0):
        result[chosen[turn]] = scatter(result[chosen[turn]], values[turn])
    return result.reshape(operand.shape)


def _choose(
    operand: Array,
    counts: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    lows: Sequence[int],
    select: Callable[[Array, Array], Array],
) -> Array:
    """The flat index of the chosen operand element for each window, -1 for a window that has none."""
    flat = operand.reshape(-1)
    index = np.full(tuple(counts), -1, np.int64)
    best = np.zeros(tuple(counts), operand.dtype)
    if operand.size == 0 or index.size == 0:
        return index
    starts = np.indices(tuple(counts))
    for offset in np.ndindex(*window):
        at = [starts[d] * strides[d] + offset[d] - lows[d] for d in range(operand.ndim)]
        inside = np.ones(index.shape, np.bool_)
        here = np.zeros(index.shape, np.int64)
        for position, size in zip(at, operand.shape, strict=True):
            inside &= (position >= 0) & (position < size)
            here = here * size + np.clip(position, 0, size - 1)
        candidate = np.asarray(flat[here])
        takes = inside & ((index < 0) | ~np.asarray(select(best, candidate)))
        index = np.where(takes, here, index)
        best = np.where(takes, candidate, best)
    return index


def turns(targets: Array, valid: Array) -> list[Array]:
    """Split positions into groups of distinct targets that, taken in order, keep each target's own order.

    Group k holds the k-th valid position of every target, so a group may be applied at once.
    """
    positions = np.flatnonzero(valid)
    order = positions[np.argsort(targets[positions], kind="stable")]
    sorted_targets = targets[order]
    starts = np.flatnonzero(np.diff(sorted_targets, prepend=sorted_targets[:1] - 1))
    rank = np.arange(order.size) - np.repeat(starts, np.diff(starts, append=order.size))
    return [np.sort(order[rank == k]) for k in range(int(rank.max(initial=-1)) + 1)]


def map(inputs: Sequence[Array], *, dimensions: Sequence[int], computation: Callable[..., Array]) -> Array:
    """`computation` applied elementwise to the inputs; `dimensions` are all of them."""
    del dimensions
    return np.asarray(computation(*inputs))


def _promote(
    inputs: Sequence[Array], init_values: Sequence[Array], dtypes: Sequence[DType] | None
) -> tuple[list[Array], list[Array]]:
    targets = list(dtypes) if dtypes is not None else [init.dtype for init in init_values]
    return (
        [convert(x, dtype=dtype) for x, dtype in zip(inputs, targets, strict=True)],
        [convert(x, dtype=dtype) for x, dtype in zip(init_values, targets, strict=True)],
    )


def _arrays(values: Sequence[Array]) -> list[Array]:
    return [np.asarray(value) for value in values]
