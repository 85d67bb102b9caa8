"""Host functions: data-dependent sizes, library routines that a target lacks, and prints.

These few, by name, are all that a `gcomp.host` op or a plan's host step may call. Each takes arrays and the step's
attributes as keywords, and returns a tuple of new arrays, whose sizes bind the symbols in the step's result types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gcomp.errors import InputError
from gcomp.reference.numpy import linalg
from gcomp.reference.numpy.images import decode_image
from gcomp.reference.numpy.lapack import lapack
from gcomp.reference.numpy.mel import mel_weight_matrix
from gcomp.reference.numpy.printing import render, write

Array = np.ndarray[Any, Any]
HostFunction = Callable[..., tuple[Array, ...]]
ResultType = tuple[tuple[int, ...], np.dtype[Any]]

_LARGEST = 2**40
_MOST = 2**62  # of what NumPy counts, even in a tensor of no elements


def nonzero(x: Array) -> tuple[Array, ...]:
    """The indices of elements that are not zero: i64[rank, n], in row-major order; a scalar counts as [1]."""
    return (np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64),)


def extents(x: Array, *, role: str) -> tuple[Array, ...]:
    """Integers as sizes: an empty i1 tensor of shape `(*x, 0)`. InputError, naming `role`, for a negative one."""
    sizes = [int(n) for n in x.reshape(-1)]
    if any(not 0 <= n < _LARGEST for n in sizes):
        raise InputError(f"The {role}, computed from the inputs, is {sizes}.", why="A size is at least 0.")
    if math.prod(max(n, 1) for n in sizes) >= _MOST:
        raise InputError(f"The {role}, computed from the inputs, is {sizes}.", why="No memory holds so many elements.")
    return (np.empty((*sizes, 0), np.bool_),)


def unique(x: Array, *, axis: int | None = None, sorted: bool = True) -> tuple[Array, ...]:
    """Distinct elements (or slices along `axis`), where each is first, which one every element is, and how many.

    Ascending, or in order of first appearance. All NaNs are one value.
    """
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        inverse = np.argsort(order)[inverse]
        first, counts = first[order], counts[order]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


def non_max_suppression(
    boxes: Array, scores: Array, most: Array, overlap: Array, least: Array, *, centered: bool = False
) -> tuple[Array, ...]:
    """The boxes kept per batch and class: i64[n, 3] rows of (batch, class, box), best scores first in each class.

    `boxes` is f32[batch, box, 4] as two corners (y, x) in any order, or as centers and sizes (x, y, w, h); `scores`
    f32[batch, class, box]. At most `most` boxes are kept per class; one that overlaps a kept one by more than
    `overlap` (intersection over union) is not, nor one whose score is not above `least`.
    """
    limit, worst = int(most.reshape(-1)[0]), least.reshape(-1)[0]
    rows: list[tuple[int, int, int]] = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for batch in range(scores.shape[0]):
            areas = _areas(boxes[batch], centered)
            for cls in range(scores.shape[1]):
                kept = _suppressed_boxes(areas, scores[batch, cls], limit, overlap.reshape(-1)[0], worst)
                rows += [(batch, cls, box) for box in kept]
    return (np.asarray(rows, np.int64).reshape(-1, 3),)


def _areas(boxes: Array, centered: bool) -> Array:
    """The least and the greatest corner of each box, and its area, NaN where it has none: f32[5, box]."""
    first, second = boxes.T[:2], boxes.T[2:]
    found = np.empty((5, len(boxes)), boxes.dtype)
    if centered:
        half = second / 2
        found[:2], found[2:4] = first - half, first + half
    else:
        found[:2], found[2:4] = np.minimum(first, second), np.maximum(first, second)
    area = (found[2] - found[0]) * (found[3] - found[1])
    found[4] = np.where(area > 0, area, np.nan)
    return found


def _suppressed_boxes(boxes: Array, scores: Array, limit: int, overlap: Any, worst: Any) -> list[int]:
    counted = np.flatnonzero(scores > worst)
    # Of equal scores the box of the lower index goes first.
    order = counted[np.argsort(-scores[counted], kind="stable")]
    kept: list[int] = []
    for start in range(0, order.size, _AT_ONCE):
        if len(kept) >= limit:
            break
        block = order[start : start + _AT_ONCE]
        own = boxes.take(block, 1)
        if kept:
            stays = ~_overlap(boxes.take(kept, 1), own, overlap).any(0)
            block, own = block[stays], own[:, stays]
        kept += block[_greedy(_overlap(own, own, overlap))].tolist()
    return kept[: max(0, limit)]


def _greedy(overlaps: Array) -> list[int]:
    """The first box, and each that overlaps none before it that is kept: i1[box, box] in the order of boxes."""
    rows = [int.from_bytes(row.tobytes(), "little") for row in np.packbits(overlaps, 1, "little")]
    kept: list[int] = []
    suppressed = 0
    for k, row in enumerate(rows):
        if not suppressed >> k & 1:
            kept.append(k)
            suppressed |= row
    return kept


_AT_ONCE = 64
"""Boxes that are compared with those that are kept, and with each other, at a time."""


def _overlap(boxes: Array, others: Array, overlap: Any) -> Array:
    """Whether boxes overlap others by more than `overlap`: i1[box, other] of corners and areas.

    Boxes without an area overlap nothing.
    """
    (top, left, bottom, right, area), (tops, lefts, bottoms, rights, areas) = boxes[..., None], others
    shared = np.minimum(bottom, bottoms)
    shared -= np.maximum(top, tops)
    np.maximum(shared, 0, out=shared)
    width = np.minimum(right, rights)
    width -= np.maximum(left, lefts)
    shared *= np.maximum(width, 0, out=width)
    union = area + areas
    union -= shared
    found = np.divide(shared, union, out=union) > overlap
    return found if overlap >= 0 else found & (shared > 0)


def cholesky(a: Array, *, lower: bool) -> tuple[Array, ...]:
    """The factors of a batch of matrices, as `stablehlo.cholesky` defines them."""
    return (linalg.cholesky(a, lower=lower),)


def triangular_solve(
    a: Array, b: Array, *, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> tuple[Array, ...]:
    """The solutions of a batch of triangular systems, as `stablehlo.triangular_solve` defines them."""
    solved = linalg.triangular_solve(
        a, b, left_side=left_side, lower=lower, unit_diagonal=unit_diagonal, transpose_a=transpose_a
    )
    return (solved,)


def print_line(count: Array, *values: Array, format: str) -> tuple[Array, ...]:
    """Writes a line about values, as `gcomp.print` does; how many there were, by now: i32, one more than `count`."""
    write(render(format, values))
    return (np.asarray(count + np.int32(1)),)


HOST_FUNCTIONS: Mapping[str, HostFunction] = {
    "cholesky": cholesky,
    "decode_image": decode_image,
    "extents": extents,
    "lapack": lapack,
    "mel_weight_matrix": mel_weight_matrix,
    "non_max_suppression": non_max_suppression,
    "nonzero": nonzero,
    "print_line": print_line,
    "triangular_solve": triangular_solve,
    "unique": unique,
}
"""Name -> function."""

_TYPED = frozenset(("lapack",))
"""Those that are told the types of their results, as the keyword `types`."""


def call_host(
    function: str, inputs: Sequence[Array], keywords: Mapping[str, Any], types: Callable[[], Sequence[ResultType]]
) -> tuple[Array, ...]:
    """The results of a host function; `types` gives those that its results must have, where it asks."""
    more = {"types": types()} if function in _TYPED else {}
    return HOST_FUNCTIONS[function](*inputs, **keywords, **more)
