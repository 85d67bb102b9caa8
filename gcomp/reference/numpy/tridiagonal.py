"""Tridiagonal systems that may be singular: elimination with exchanges of rows, and pivots that are moved off zero.

As LAPACK's xLAGTF and xLAGTS, which jaxlib joins in one (`tridiagonal_solve_perturbed_ffi`): for inverse iteration,
which solves systems that are singular but for rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gcomp.reference.numpy.dtypes import Array


def solve_perturbed(lower: Array, middle: Array, upper: Array, right: Array) -> Array:
    """x [n, k] with a x = right, of three diagonals [n]: the first of the lower one and the last of the upper one are
    nothing."""
    n = len(middle)
    found = np.array(right)
    kind: Any = found.dtype.type
    # Of each row of the triangle: what is on the diagonal, right of it, and right of that.
    u = np.zeros((n, 3), found.dtype)
    u[0, :2] = (middle[0], upper[0]) if n > 1 else (middle[0], 0)
    scale, largest = np.abs(u[0]).sum(), np.abs(u[0]).max()
    for k in range(n - 1):
        scale = _eliminate(u, found, k, scale, lower[k + 1], middle[k + 1], upper[k + 1] if k < n - 2 else kind(0))
    # Of the last two rows, the last one's diagonal alone counts, as in jaxlib's.
    step = np.finfo(found.dtype).eps * max(largest, abs(u[-1, 0]), float(np.abs(u[: max(n - 2, 0)]).max(initial=0)))
    for k in reversed(range(n)):
        row = found[k] - sum((u[k, i] * found[k + i] for i in (1, 2) if k + i < n), start=kind(0))
        pivot, row = _pivot(u[k, 0], step, row)
        found[k] = row * (kind(1) / pivot)
    return found


def _eliminate(u: Array, found: Array, k: int, scale: Any, below: Any, middle: Any, beside: Any) -> Any:
    """Clear what is below the diagonal of row k; rows are exchanged where the next one's is greater for its size.

    `scale` is the size of row k, the result that of the next one.
    """
    size = abs(below) + abs(middle) + abs(beside)
    if not below or abs(below) / size <= (abs(u[k, 0]) / scale if u[k, 0] else 0):
        factor = below / u[k, 0] if below else below
        u[k + 1, :2] = middle - factor * u[k, 1], beside
        found[k + 1] = found[k + 1] - factor * found[k]
        return size
    factor = u[k, 0] / below
    u[k + 1, :2] = u[k, 1] - factor * middle, -factor * beside
    u[k] = below, middle, beside
    found[k], found[k + 1] = found[k + 1].copy(), found[k] - factor * found[k + 1]
    return np.abs(u[k + 1]).sum()


def _pivot(pivot: Any, step: float, row: Array) -> tuple[Any, Array]:
    """A pivot, and its row, whose quotient does not overflow: it is moved by doubled steps, or both are scaled."""
    limits = np.finfo(row.dtype)
    least = float(limits.tiny)
    most, largest = 1 / least, float(np.abs(row).max(initial=0))
    step = math.copysign(max(abs(step), least), complex(pivot).real)
    while abs(pivot) < 1:
        size = abs(pivot)
        if size < least and size and largest * least <= size:
            return pivot * row.dtype.type(most), row * row.dtype.type(most)
        if size >= least and largest <= size * most:
            break
        pivot = row.dtype.type(pivot + step)
        step *= 2
    return pivot, row


__all__ = ["solve_perturbed"]
