"""What constraints say of single symbols: a size that every call has makes ranges narrower."""

from __future__ import annotations

from collections.abc import Iterable

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
    """The least value of the one symbol of two sizes becomes the first at which they are equal, if it is near."""
    names = symbols_of(lhs) | symbols_of(rhs)
    if len(names) != 1:
        return ranges
    (name,) = names
    known = ranges[name]
    for value in range(known.lo, known.lo + _TRIED, known.multiple_of):
        if known.hi is not None and value > known.hi:
            return ranges
        try:
            if evaluate(lhs, {name: value}) == evaluate(rhs, {name: value}):
                return ranges.with_ranges({name: Range(value, known.hi, known.multiple_of)})
        except DimError:
            continue
    return ranges


__all__ = ["narrowed"]
