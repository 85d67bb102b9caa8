"""Interval arithmetic on integers. An interval is a pair (lo, hi); an infinite end is a float infinity."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

Bound = int | float
"""An int, or one of the two float infinities; never another float."""
Interval = tuple[Bound, Bound]

EVERYTHING: Interval = (-inf, inf)


def _plus(a: Bound, b: Bound) -> Bound:
    # Never mixed with a finite operand: ints beyond the range of floats would overflow.
    if isinstance(a, float):
        return a
    return b if isinstance(b, float) else a + b


def _product(a: Bound, b: Bound) -> Bound:
    if a == 0 or b == 0:
        return 0
    if isinstance(a, float) or isinstance(b, float):
        return inf if (a > 0) == (b > 0) else -inf
    return a * b


def add(a: Interval, b: Interval) -> Interval:
    return _plus(a[0], b[0]), _plus(a[1], b[1])


def multiply(a: Interval, b: Interval) -> Interval:
    corners = [_product(x, y) for x in a for y in b]
    return min(corners), max(corners)


def negate(a: Interval) -> Interval:
    return -a[1], -a[0]


def power(a: Interval, exponent: int) -> Interval:
    """The interval of `x**exponent` for a positive exponent."""
    low, high = (end**exponent if isinstance(end, int) else _product(1, end) for end in a)
    if exponent % 2 or a[0] >= 0:
        return low, high
    low = inf if isinstance(low, float) else low
    return (high, low) if a[1] <= 0 and not isinstance(high, float) else (0, max(low, high))


def intersect(a: Interval, b: Interval) -> Interval:
    """The common part of two sound bounds; `a` where they contradict (the size is then never defined)."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else a


def minimum(intervals: Iterable[Interval]) -> Interval:
    lows, highs = zip(*intervals, strict=True)
    return min(lows), min(highs)


def maximum(intervals: Iterable[Interval]) -> Interval:
    lows, highs = zip(*intervals, strict=True)
    return max(lows), max(highs)


def floordiv(a: Interval, b: Interval) -> Interval:
    """Bounds of `x // y` for x in `a` and nonzero y in `b`."""
    if b[0] > 0:
        low = _quotient(a[0], b[1] if a[0] >= 0 else b[0])
        high = _quotient(a[1], b[0] if a[1] >= 0 else b[1])
        return low, high
    if b[1] < 0:
        return floordiv(negate(a), negate(b))
    # A divisor of either sign has magnitude one or more.
    reach = max(-a[0], a[1], 0)
    return -reach, reach


def _quotient(a: Bound, b: Bound) -> Bound:
    """`a // b` for a positive `b`, as a limit where an end is infinite."""
    if isinstance(a, float):
        return a
    if isinstance(b, float):
        return 0 if a >= 0 else -1
    return a // b


def modulo(a: Interval, b: Interval) -> Interval:
    """Bounds of `x % y` for x in `a` and nonzero y in `b`."""
    if b[0] > 0:
        if a[0] >= 0:
            return a if a[1] < b[0] else (0, min(a[1], _plus(b[1], -1)))
        return 0, _plus(b[1], -1)
    if b[1] < 0:
        return negate(modulo(negate(a), negate(b)))
    return min(_plus(b[0], 1), 0), max(_plus(b[1], -1), 0)


def divide_inwards(a: Interval, k: int) -> Interval:
    """Bounds of the integer x given bounds of `k*x`, for a positive `k`."""
    low, high = a
    return (
        low if isinstance(low, float) else -(-low // k),
        high if isinstance(high, float) else high // k,
    )
