"""The least sizes that meet a program's constraints, for whoever must choose sizes where none are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice

from gcomp.dims.algebra import DimError, Size, symbol
from gcomp.dims.binding import Constraint
from gcomp.dims.functions import symbols_of
from gcomp.dims.ranges import Range, Ranges

_DEPTHS = (16, 256, 4096, 65536)
"""So many values of each symbol are tried, the least ones first: few before many."""
_TRIES = 200_000
"""Assignments that are tried at most."""


def least_sizes(
    ranges: Ranges, constraints: Iterable[Constraint], given: Mapping[str, int], shapes: Iterable[Size] = ()
) -> dict[str, int] | None:
    """Sizes for all symbols of `ranges` with which `constraints` hold and no size of `shapes` is negative.

    Sizes in `given` stay; what only they decide is not checked. The others are as small as they can be, the first
    symbol before the second. None where nothing is found within a bound on the values tried.
    """
    search = _Search(ranges, given, constraints, shapes)
    for depth in _DEPTHS:
        if (found := search.within(depth)) is not None:
            return {name: found[name] for name in (*ranges, *(n for n in given if n not in ranges))}
    return None


class _Search:
    def __init__(
        self, ranges: Ranges, given: Mapping[str, int], constraints: Iterable[Constraint], shapes: Iterable[Size]
    ) -> None:
        self.ranges, self.given, self.left = ranges, given, _TRIES
        self.names = [name for name in ranges if name not in given]
        order = {name: i for i, name in enumerate(self.names)}
        self.decided: list[list[Constraint]] = [[] for _ in self.names]
        """What can be checked when a symbol has got its value: it comes last of those that decide it."""
        sizes = [Constraint("le", 0, size, "a size") for size in shapes if symbols_of(size)]
        for constraint in (*constraints, *sizes):
            open_ones = [order[name] for name in constraint.symbols if name in order]
            if open_ones and constraint.symbols <= order.keys() | given.keys():
                self.decided[max(open_ones)].append(constraint)

    def within(self, depth: int) -> dict[str, int] | None:
        """The least sizes among the first `depth` values of each symbol."""
        choices = [list(self._alone(i, depth)) for i in range(len(self.names))]
        return self._solve(0, dict(self.given), choices)

    def _alone(self, i: int, depth: int) -> Iterator[int]:
        """The values of a symbol that fit where no other open symbol is looked at."""
        name = self.names[i]
        alone = [c for c in self.decided[i] if c.symbols <= {name, *self.given}]
        bounds = [c.lhs for c in alone if c.kind == "le" and isinstance(c.lhs, int) and c.rhs == symbol(name)]
        for value in islice(_values(self.ranges[name], max(bounds, default=0)), depth):
            if _hold(alone, {**self.given, name: value}):
                yield value

    def _solve(self, i: int, chosen: dict[str, int], choices: Sequence[Sequence[int]]) -> dict[str, int] | None:
        if i == len(self.names):
            return chosen
        for value in choices[i]:
            self.left -= 1
            if self.left < 0:
                return None
            tried = {**chosen, self.names[i]: value}
            if _hold(self.decided[i], tried) and (found := self._solve(i + 1, tried, choices)) is not None:
                return found
        return None


def _values(known: Range, least: int) -> Iterator[int]:
    low, step = max(known.lo, least, 0), known.multiple_of
    if known.hi is None:
        return count(-(-low // step) * step, step)
    return iter(range(-(-low // step) * step, known.hi + 1, step))


def _hold(constraints: Iterable[Constraint], sizes: Mapping[str, int]) -> bool:
    try:
        return all(constraint.check(sizes) is None for constraint in constraints)
    except DimError:
        return False
