"""Convolutions by windows of 3x3 with fewer products (Winograd 1980, Lavin and Gray 2016): F(m x m, 3 x 3).

A tile of m x m results needs the n x n elements around it, n = m + 2. They are taken as coefficients of a polynomial,
whose values at n - 1 points and at infinity are computed along both axes; so are the values of the weights. Products of
values at a point are values of the product, which is interpolated. So a tile takes n^2 products for each pair of
channels, where its sums have 9 m^2: 16 for 36, or 36 for 144.

The points decide how much rounding is made larger on the way back. Beside 0 and infinity they come in pairs of both
signs. For m = 4, 5/8 and 3/2 make it half as large as 1 and 2 do, which are usual; no pair of eighths is much better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any, TypeVar

import numpy as np

from gcomp.records import record

Array = np.ndarray[Any, Any]
Matrix = tuple[tuple[float, ...], ...]
T = TypeVar("T")
Sum = Callable[[Sequence[tuple[float, T]]], T]
"""The sum of factors times values, in their order."""

PAIRS: Mapping[int, Sequence[Fraction]] = {2: (Fraction(1),), 4: (Fraction(5, 8), Fraction(3, 2))}
"""Results of a tile along an axis -> the points, beside 0 and infinity, that are there with both signs."""

WINDOW = 3
"""Elements of a window along an axis."""

CHAIN = 16
"""Channels that are summed one after the other, before their sum is added to what was summed before: what rounding adds
to long sums would be made larger on the way back."""


@record
class Transform:
    """The matrices of F(m x m, 3 x 3) along an axis: `results` is [m, n], `inputs` [n, n], `weights` [n, 3].

    f32 has all numbers of the first two.
    """

    results: Matrix
    inputs: Matrix
    weights: Matrix


@cache
def transform(m: int) -> Transform:
    """The matrices for tiles of m x m results."""
    points = [Fraction(0), *(sign * p for p in PAIRS[m] for sign in (1, -1))]
    scales = [prod((p - q for q in points if q != p), start=Fraction(1)) for p in points]
    powers = [[p**k for k in range(m)] for p in points]
    weights = [[p**k / scale for k in range(WINDOW)] for p, scale in zip(points, scales, strict=True)]
    inputs = [[*_polynomial([q for q in points if q != p]), Fraction(0)] for p in points]
    results = zip(*powers, [0] * (m - 1) + [1], strict=True)
    return Transform(
        _floats(results), _floats([*inputs, _polynomial(points)]), _floats([*weights, [0] * (WINDOW - 1) + [1]])
    )


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the product of (x - root), the constant first."""
    found = [Fraction(1)]
    for root in roots:
        found = [a - root * c for a, c in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return found


def _floats(rows: Any) -> Matrix:
    return tuple([tuple(map(float, row)) for row in rows])


def evaluate(m: int, values: Sequence[T], add: Sum[T]) -> list[T]:
    """The values at all points of a polynomial with n coefficients: `inputs` times these.

    At both points of a pair the terms of even and of odd degree are the same, but for the sign of the latter.
    """
    first, *pairs, last = transform(m).inputs
    found = [_plain(first, values, add)]
    for row, point in zip(pairs[::2], map(float, PAIRS[m]), strict=True):
        even = _plain([factor * (k % 2 == 0) for k, factor in enumerate(row)], values, add)
        odd = _plain([factor * (k % 2) / point for k, factor in enumerate(row)], values, add)
        found += [add([(1, even), (point, odd)]), add([(1, even), (-point, odd)])]
    return [*found, _plain(last, values, add)]


def interpolate(m: int, values: Sequence[T], add: Sum[T]) -> list[T]:
    """The m results of products at all points: `results` times these."""
    pairs = [_both(*pair, add) for pair in zip(values[1:-1:2], values[2:-1:2], strict=True)]
    found: list[T] = []
    for k in range(m):
        terms = [(float(point**k), pair[k % 2]) for point, pair in zip(PAIRS[m], pairs, strict=True)]
        start, end = [(1.0, values[0])] if k == 0 else [], [(1.0, values[-1])] if k == m - 1 else []
        found.append(add([*start, *end, *terms]))
    return found


def _both(first: T, second: T, add: Sum[T]) -> tuple[T, T]:
    """A sum and a difference."""
    return add([(1, first), (1, second)]), add([(1, first), (-1, second)])


def _plain(row: Sequence[float], values: Sequence[T], add: Sum[T]) -> T:
    """A row times values, the greatest degree first, whose factor is 1."""
    return add([(factor, value) for factor, value in zip(reversed(row), reversed(values), strict=True) if factor])


def transformed(weights: Array, m: int, width: int) -> Array:
    """The values of weights [3, 3, i, o] at all points, in panels [o / width, n * n, i, width], in f32.

    They are computed in f64 and rounded once. Sums are NumPy's of single elements, which are the same on all machines.
    """
    matrix = transform(m).weights
    n, (*_, channels, features) = len(matrix), weights.shape
    found = np.empty((features // width, n * n, channels, width), np.float32)

    def along(row: Sequence[float], values: Sequence[Array]) -> Array:
        terms = [factor * value for factor, value in zip(row, values, strict=True) if factor]
        return sum(terms[1:], start=terms[0])

    for panel, values in enumerate(found):
        part = weights[..., panel * width : (panel + 1) * width].astype(np.float64)
        down = [along(row, list(part)) for row in matrix]
        for i, rows in enumerate(down):
            for j, row in enumerate(matrix):
                values[i * n + j] = along(row, list(rows))
    return found


__all__ = [
    "CHAIN",
    "PAIRS",
    "WINDOW",
    "Matrix",
    "Sum",
    "Transform",
    "evaluate",
    "interpolate",
    "transform",
    "transformed",
]
