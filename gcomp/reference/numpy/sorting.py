"""Sorting by a comparator, and the k largest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gcomp.reference.numpy.dtypes import Array, is_float
from gcomp.reference.numpy.elementwise import total_order_key
from gcomp.reference.numpy.integers import storage


def sort(
    inputs: Sequence[Array], *, dimension: int = -1, is_stable: bool = False, comparator: Callable[..., Array]
) -> list[Array]:
    """N inputs of one shape, sorted together along `dimension`; always stable.

    `comparator` takes (lhs 0, rhs 0, lhs 1, rhs 1, ...) of one shape and returns i1, elementwise: true where
    lhs comes first. It is a bottom-up merge sort, so a comparator that is no strict weak ordering (a plain LT
    on NaN) still gives a permutation: the one that merging runs of 1, 2, 4, ... gives, where the right
    element is taken only if the comparator puts it strictly first.
    """
    del is_stable
    rank = inputs[0].ndim
    axis = dimension % rank
    length = inputs[0].shape[axis]
    count = inputs[0].size // length if length else 0
    rows = [np.moveaxis(x, axis, -1).reshape(count, length) for x in inputs]
    order = _merge_sort(rows, comparator) if rows[0].size else np.zeros(rows[0].shape, np.int64)
    moved = [*(n for d, n in enumerate(inputs[0].shape) if d != axis), length]
    return [np.array(np.moveaxis(np.take_along_axis(row, order, axis=-1).reshape(moved), -1, axis)) for row in rows]


def _merge_sort(rows: Sequence[Array], comparator: Callable[..., Array]) -> Array:
    """The sorting permutation of each row of [m, n] arrays."""
    m, n = rows[0].shape
    order = np.array(np.broadcast_to(np.arange(n, dtype=np.int64), (m, n)))
    run = 1
    while run < n:
        order = _merge_runs(rows, order, run, comparator)
        run *= 2
    return order


def _merge_runs(rows: Sequence[Array], order: Array, run: int, comparator: Callable[..., Array]) -> Array:
    """Merge neighbouring sorted runs, all pairs of all rows in step."""
    m, n = order.shape
    starts = np.arange(0, n, 2 * run, dtype=np.int64)
    row = np.repeat(np.arange(m, dtype=np.int64), starts.size)
    left = np.tile(starts, m)
    left_end = np.minimum(left + run, n)
    right, right_end = left_end.copy(), np.minimum(left + 2 * run, n)
    target = left.copy()
    merged = np.empty_like(order)
    while True:
        active = np.flatnonzero((left < left_end) | (right < right_end))
        if not active.size:
            return merged
        at, i, j = row[active], left[active], right[active]
        has_left, has_right = i < left_end[active], j < right_end[active]
        lhs, rhs = order[at, np.minimum(i, n - 1)], order[at, np.minimum(j, n - 1)]
        takes_right = has_right & ~has_left
        both = np.flatnonzero(has_left & has_right)
        if both.size:
            arguments = [x[at[both], index[both]] for x in rows for index in (rhs, lhs)]
            takes_right[both] = np.asarray(comparator(*arguments))
        merged[at, target[active]] = np.where(takes_right, rhs, lhs)
        target[active] += 1
        right[active] += takes_right
        left[active] += ~takes_right


def top_k(operand: Array, *, k: int, is_stable: bool = True) -> tuple[Array, Array]:
    """(values, indices as i32) of the k largest elements of the last dimension, largest first.

    Floats are in total order, so +NaN is greatest and -0 is below +0; of equals the lower index comes
    first, whatever `is_stable`.
    """
    del is_stable
    key = total_order_key(operand) if is_float(operand.dtype) else storage(operand)
    # Bitwise NOT reverses the order of two's complement and unsigned integers, and cannot overflow.
    indices = np.argsort(~key, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(operand, indices, axis=-1), indices.astype(np.int32)
