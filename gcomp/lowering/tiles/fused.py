"""a * b + c rounded once, on NumPy arrays, which have no such operation.

Of f32, product and sum are made in f64. Of f64, they are made from parts without an error (Dekker's product, Knuth's
sum), as Boldo and Melquiond do ("Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to
odd", 2008). What is rounded twice is rounded to odd first: a number between two floats takes the one whose last bit is
1, so that the second rounding sees on which side of a middle it lies. The few lanes whose parts may overflow or
underflow are computed with Python's integers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_BIT_LENGTH = 53
"""Bits of an f64's significand."""
_SPLITTER = float((1 << (_BIT_LENGTH + 1) // 2) + 1)
_LEAST, _MOST = 2.0**-960, 2.0**990
"""Bounds of operands' and products' sizes within which no part of a product is lost."""


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of f32 or f64, rounded once. Any NaN stands for NaN."""
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        return _single(a, b, c) if a.dtype == np.float32 else _double(a, b, c)


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b as a float and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """a * b as a float and its error, where neither overflows nor underflows."""
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    product = a * b
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _split(a: Array) -> tuple[Array, Array]:
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def _to_odd(total: Array, error: Array) -> Array:
    """The float towards which `total + error` lies that has an odd last bit; `total` where it is exact."""
    bits = np.ascontiguousarray(total).view(np.int64)
    away = (error > 0) == (total > 0)
    moved = np.where((error != 0) & (bits & 1 == 0), bits + np.where(away, 1, -1), bits)
    return moved.view(np.float64)


def _single(a: Array, b: Array, c: Array) -> Array:
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total, error = _sum(product, addend)
    # What is not finite has no error, and a total of 0 is exact.
    inexact = np.isfinite(total) & (error != 0)
    return np.where(inexact, _to_odd(total, error), total).astype(np.float32)


def _double(a: Array, b: Array, c: Array) -> Array:
    simple = ~(np.isfinite(a) & np.isfinite(b)) | (a == 0) | (b == 0)
    product, low = _product(a, b)
    sizes = np.abs(a), np.abs(b), np.abs(product)
    fits = (sizes[2] >= _LEAST) & (np.maximum(np.maximum(sizes[0], sizes[1]), sizes[2]) <= _MOST) & (np.abs(c) <= _MOST)
    # product + low + c, the small ones first.
    upper, upper_low = _sum(c, low)
    total, total_low = _sum(product, upper)
    rest = total + _to_odd(*_sum(total_low, upper_low))
    # The product of finite numbers may overflow beside an infinity that is added.
    found = np.where(simple, a * b + c, np.where(np.isfinite(c), rest, c))
    rare = ~(simple | fits) & np.isfinite(c)
    if rare.any():
        lanes = zip(a[rare].tolist(), b[rare].tolist(), c[rare].tolist(), strict=True)
        found[rare] = [exactly(*lane) for lane in lanes]
    return found


def exactly(a: float, b: float, c: float) -> float:
    """a * b + c of finite numbers, a and b not 0, by way of the exact number."""
    number = Fraction(a) * Fraction(b) + Fraction(c)
    if number == 0:
        # What cancels is +0.
        return 0.0
    try:
        # Python's division of integers rounds to nearest even, subnormal quotients too.
        return number.numerator / number.denominator
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
