"""Sizes to try a program at: what its symbols may be where something changes.

Both ends of each range, 0 and 1 where they are allowed, symbols that are equal and that differ, and both sides of every
point at which a formula changes its sign: the program's own (the operands of a minimum, a dividend beside its divisor),
and those that a caller adds, such as what a pass compared. All meet the program's constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, pairwise

from gcomp.dims import (
    Constraint,
    Dim,
    DimError,
    Range,
    Ranges,
    Size,
    bind,
    evaluate,
    substitute,
    symbols_of,
)
from gcomp.dims.algebra import Atom
from gcomp.ir.program import Port, Program
from gcomp.ir.types import is_tensor, shape_of

Sizes = dict[str, int]

MOST = 24
"""How many assignments are made, besides those of a caller's formulas."""
_MOST_BOUNDARIES = 96
_ORDINARY, _EQUAL, _MIDDLE = 3, 4, 17
_UNBOUNDED = 3
"""So many steps above its least a symbol without a greatest is taken to end."""
_ALONE = 6
"""So many symbols are each put to an end alone."""
_TRIES = 2000
"""Steps of the search for sizes that meet the constraints."""
_DENSE, _DOUBLINGS = 16, 24


def symbols_in(program: Program, ports: Sequence[Port] | None = None) -> list[str]:
    """The symbols of a program's inputs, in order."""
    ports = program.inputs() if ports is None else ports
    return sorted({name for port in ports for size in port.shape for name in symbols_of(size)})


def size_choices(
    program: Program, extra: Iterable[Size] = (), *, most: int = MOST, ports: Sequence[Port] | None = None
) -> list[Sizes]:
    """Assignments to the symbols of the inputs, ordinary ones first; one, which is empty, where there are none.

    `extra` are formulas at whose changes of sign something is decided, besides the program's own. Where nothing that
    meets the constraints is found, the first of what was tried stands alone.
    """
    ports = program.inputs() if ports is None else ports
    names = symbols_in(program, ports)
    if not names:
        return [{}]
    search = _Search(program, ports, names)
    found: dict[tuple[int, ...], Sizes] = {}

    def add(wanted: Iterable[Mapping[str, int]], limit: int) -> None:
        for one in wanted:
            if len(found) >= limit:
                return
            if (sizes := search.nearest(one)) is not None:
                found.setdefault(tuple(sizes.values()), sizes)

    first = _ordinary(names, program.ranges)
    add([first, {name: program.ranges[name].lo for name in names}], most)
    base = next(iter(found.values()), search.snapped(first))
    add(islice(search.boundaries(extra, base), _MOST_BOUNDARIES), most + _MOST_BOUNDARIES)
    limit = len(found) + most
    add(_ends(names, program.ranges, base), limit)
    add(islice(search.boundaries(_formulas(program, ports, names), base), _MOST_BOUNDARIES), limit)
    return list(found.values()) or [search.snapped(first)]


def ordinary_sizes(program: Program) -> Sizes:
    """A size for every symbol of the inputs: small, and different for different symbols where ranges allow."""
    return size_choices(program, most=1)[0]


def _ordinary(names: Sequence[str], ranges: Ranges) -> Sizes:
    return {name: max(ranges[name].lo, _ORDINARY + i) for i, name in enumerate(names)}


def _ends(names: Sequence[str], ranges: Ranges, base: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """All symbols at 1, equal, and at their greatest; each alone at an end; all of middle size."""
    high = {name: _greatest(ranges[name]) for name in names}
    yield dict.fromkeys(names, 1)
    yield dict.fromkeys(names, _EQUAL)
    yield high
    for name in names[:_ALONE]:
        for value in dict.fromkeys((ranges[name].lo, 1, high[name])):
            yield {**base, name: value}
    yield {name: _MIDDLE + i for i, name in enumerate(names)}
    yield dict.fromkeys(names, 2)


def _greatest(known: Range) -> int:
    return known.hi if known.hi is not None else known.lo + _UNBOUNDED * known.multiple_of


# ---- formulas that decide something ---------------------------------------------------------------------------------


def _formulas(program: Program, ports: Sequence[Port], names: Sequence[str]) -> list[Size]:
    """What changes its sign where a formula of the program's shapes and constraints takes another branch."""
    seen: dict[Size, None] = {size: None for port in ports for size in port.shape}
    for op in program.ops():
        for result in op.results:
            if is_tensor(result.type):
                seen.update((size, None) for size in shape_of(result) if isinstance(size, Dim))
    for constraint in program.constraints:
        seen.update((size, None) for size in (constraint.lhs, constraint.rhs) if isinstance(size, Dim))
        seen[constraint.lhs - constraint.rhs] = None
    found: dict[Size, None] = {}
    for size in seen:
        if isinstance(size, Dim) and symbols_of(size) <= set(names):
            if len(size.terms) > 1:
                found.update({size: None, size - 1: None})
            found.update(dict.fromkeys(_decisions(size)))
    return list(found)


def _decisions(size: Size) -> Iterator[Size]:
    for atom in _atoms(size):
        if atom.head in ("min", "max"):
            yield from (a - b for a, b in combinations(atom.args, 2))
        elif atom.head in ("floordiv", "mod"):
            yield atom.args[0] - atom.args[1]
            yield atom.args[0] % atom.args[1]


def _atoms(size: Size) -> Iterator[Atom]:
    """The functions of sizes in a formula, inner ones too."""
    for monomial, _ in size.terms if isinstance(size, Dim) else ():
        for atom, _ in monomial:
            if atom.args:
                yield atom
                for arg in atom.args:
                    yield from _atoms(arg)


# ---- the search -----------------------------------------------------------------------------------------------------


class _Search:
    """Looks for sizes that a program takes."""

    def __init__(self, program: Program, ports: Sequence[Port], names: Sequence[str]) -> None:
        self.names, self.ranges = names, program.ranges
        self.shapes = {size for port in ports for size in port.shape if isinstance(size, Dim)}
        self.constraints = [c for c in program.constraints if c.symbols <= set(names)]
        self._left = 0

    def snapped(self, wanted: Mapping[str, int]) -> Sizes:
        """The sizes in range that are nearest to what is wanted."""
        return {name: self._in_range(name, wanted[name]) for name in self.names}

    def nearest(self, wanted: Mapping[str, int]) -> Sizes | None:
        """Sizes that the program takes, as wanted where that is possible; None where none were found."""
        sizes = self.snapped(wanted)
        if self._fits(sizes):
            return sizes
        if not self.constraints and not self.shapes:
            return None
        self._left = _TRIES
        return self._solve({}, sizes)

    def _in_range(self, name: str, value: int) -> int:
        known = self.ranges[name]
        value = -(-max(known.lo, value) // known.multiple_of) * known.multiple_of
        return value if known.hi is None else min(value, known.hi)

    def _fits(self, sizes: Mapping[str, int]) -> bool:
        known = sizes.keys()
        try:
            return all(c.check(sizes) is None for c in self.constraints if c.symbols <= known) and all(
                evaluate(size, sizes) >= 0 for size in self.shapes if symbols_of(size) <= known
            )
        except DimError:
            return False

    def _solve(self, chosen: Sizes, wanted: Mapping[str, int]) -> Sizes | None:
        if len(chosen) == len(self.names):
            return {name: chosen[name] for name in self.names}
        name = self.names[len(chosen)]
        for value in dict.fromkeys((wanted[name], *self._candidates(name, chosen))):
            self._left -= 1
            if self._left < 0:
                return None
            if value in self.ranges[name] and self._fits(tried := {**chosen, name: value}):
                found = self._solve(tried, wanted)
                if found is not None:
                    return found
        return None

    def _candidates(self, name: str, chosen: Mapping[str, int]) -> Iterator[int]:
        """Values that a constraint asks for, and then the values of the range, ever farther apart."""
        for constraint in self.constraints:
            if constraint.symbols - chosen.keys() == frozenset((name,)):
                yield from self._asked(constraint, name, chosen)
        yield from self._grid(name)

    def _asked(self, constraint: Constraint, name: str, chosen: Mapping[str, int]) -> Iterator[int]:
        """The values with which the sides are equal, or the one is a small multiple of the other."""
        for k in range(_DENSE) if constraint.kind == "divides" else (1,):
            try:
                rest = substitute(constraint.lhs * k - constraint.rhs, chosen)
                if isinstance(rest, Dim):
                    yield bind([(rest, 0, "")], self.ranges)[name]
            except (DimError, KeyError):
                continue

    def _grid(self, name: str) -> list[int]:
        """The least values of a symbol, then ever farther apart, and its greatest."""
        known = self.ranges[name]
        step = known.multiple_of
        values = [known.lo + step * k for k in range(_DENSE)]
        values += [known.lo + (step << k) for k in range(5, _DOUBLINGS)]
        return [v for v in values if known.hi is None or v < known.hi] + ([] if known.hi is None else [known.hi])

    def boundaries(self, formulas: Iterable[Size], base: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
        """Sizes on both sides of each change of a formula's sign, as one symbol grows and the others stay."""
        for formula in formulas:
            for name in sorted(symbols_of(formula) & set(self.names)):
                yield from self._changes(formula, name, base)

    def _changes(self, formula: Size, name: str, base: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
        step = self.ranges[name].multiple_of

        def sign(value: int) -> int | None:
            try:
                number = evaluate(formula, {**base, name: value})
            except DimError:
                return None
            return (number > 0) - (number < 0)

        for low, high in pairwise(self._grid(name)):
            before, after = sign(low), sign(high)
            if before == after:
                continue
            while high - low > step:
                middle = low + (high - low) // (2 * step) * step
                if sign(middle) == before:
                    low = middle
                else:
                    high = middle
            # A change from below 0 to above passes 0, which may be a case of its own.
            yield from ({**base, name: value} for value in (low, high, high + step))


__all__ = ["MOST", "Sizes", "ordinary_sizes", "size_choices", "symbols_in"]
