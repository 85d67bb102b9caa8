"""What constraints say of single symbols: a size that every call has makes ranges narrower."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gcomp.dims.algebra import Dim, DimError, Size, evaluate
from gcomp.dims.binding import Constraint
from gcomp.dims.functions import symbols_of
from gcomp.dims.ranges import Range, Ranges

_STEEPEST = 1 << 12
"""How much a symbol may have to grow for a size that depends on it to grow by one: the product of all strides."""
_TRIED = 64
"""Least values of a symbol that are tried on an equation, at most."""


def narrowed(ranges: Ranges, constraints: Iterable[Constraint]) -> Ranges:
    """The ranges of the symbols, without least and greatest values at which a constraint does not hold."""
    for constraint in constraints:
        kind, lhs, rhs = constraint.kind, constraint.lhs, constraint.rhs
        if isinstance(lhs, int) and kind == "eq":
            lhs, rhs = rhs, lhs
        if kind in ("eq", "le") and isinstance(lhs, Dim) and isinstance(rhs, int) and str(lhs) in symbols_of(lhs):
            known = ranges[str(lhs)]
            if known.lo <= rhs and (known.hi is None or rhs <= known.hi):
                low, step = (rhs, 1) if kind == "eq" else (known.lo, known.multiple_of)
                ranges = ranges.with_ranges({str(lhs): Range(low, rhs, step)})
        elif kind == "le" and isinstance(lhs, int) and isinstance(rhs, Dim):
            ranges = _reaching(ranges, lhs, rhs)
        elif kind == "eq":
            ranges = _equal(ranges, lhs, rhs)
    return ranges


def _reaching(ranges: Ranges, bound: int, size: Dim) -> Ranges:
    """The least value of the symbol of `size` becomes the first at which `size` reaches `bound`."""
    if len(symbols_of(size)) != 1:
        return ranges
    (name,) = symbols_of(size)
    known = ranges[name]
    low, high = known.lo, known.lo + abs(bound) * _STEEPEST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if evaluate(size, {name: middle}) >= bound else (middle + 1, high)
    # The search finds the first only of a size that grows; that none below reaches the bound is proved.
    if low > known.lo and (known.hi is None or low <= known.hi):
        below = ranges.with_ranges({name: Range(known.lo, low - 1)})
        if below.less_equal(size, bound - 1):
            return ranges.with_ranges({name: Range(low, known.hi, known.multiple_of)})
    return ranges


def _equal(ranges: Ranges, lhs: Size, rhs: Size) -> Ranges:
    """The least value of the one symbol of two sizes becomes the first at which they are equal, if it is near; the
    greatest the last before those at which they are known to differ."""
    names = symbols_of(lhs) | symbols_of(rhs)
    if len(names) != 1:
        return ranges
    (name,) = names
    known = ranges[name]

    def equal(value: int) -> bool:
        try:
            return evaluate(lhs, {name: value}) == evaluate(rhs, {name: value})
        except DimError:
            return False

    least = next(filter(equal, range(known.lo, known.lo + _TRIED, known.multiple_of)), None)
    if least is None or least not in known:
        return ranges
    greatest = _last(equal, least, known.multiple_of)
    if known.hi is None or greatest < known.hi:
        above = ranges.with_ranges({name: Range(greatest + 1, known.hi)})
        known = replace(known, hi=greatest) if above.equal(lhs, rhs) is False else known
    return ranges.with_ranges({name: replace(known, lo=least)})


def _last(holds: Callable[[int], bool], low: int, step: int) -> int:
    """A value from `low` on, in steps, at which something holds as at `low`, and at the next one not; the least of them
    where it holds at no other, later one. It is looked for in strides that double, and not beyond a limit."""
    stride = step
    while stride < step * _STEEPEST and holds(low + stride):
        low, stride = low + stride, stride * 2
    while stride > step:
        stride //= 2
        low = low + stride if holds(low + stride) else low
    return low


__all__ = ["narrowed"]
