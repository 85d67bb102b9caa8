"""Simpler maps of the same meaning, from what is known of coordinates (`0 <= d(i) < size`) and of symbols.

`(6*d0 + d1) // 6` is d0 where d1 < 6; so is `(n*d0 + d1) // n` where d1 < n: bounds may be symbolic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from gcomp.analysis.indexing.maps import Condition, IndexingMap, nothing, r
from gcomp.dims import (
    Atom,
    Dim,
    DimError,
    DimLimitError,
    Range,
    Ranges,
    Size,
    ceildiv,
    exact_div,
    floordiv,
    mod,
    product,
    substitute,
    symbols_of,
)
from gcomp.dims.algebra import Monomial, as_atom, atom_size, terms_of
from gcomp.dims.functions import apply, replace_atoms


class _FromZero(Ranges):
    DEFAULT = Range(0)


FROM_ZERO = _FromZero()
"""Ranges that say of no symbol more than that it is a size."""


def simplify(m: IndexingMap, ranges: Ranges = FROM_ZERO, *, keep_ranges: bool = False) -> IndexingMap:
    """The map in simpler formulas, without conditions that always hold and range variables that nothing uses.

    With `keep_ranges` these stay too: the operands of a contraction have theirs in common.
    """
    if not m.conditions and not any(map(_needs_work, m.indices)) and _in_order(m):
        return m
    try:
        return _simplify(m, Said.by(ranges), keep_ranges)
    except DimLimitError:
        return m


@dataclass(frozen=True, slots=True)
class Said:
    """Ranges, compared by what they say."""

    said: tuple[Range | tuple[str, Range], ...]
    ranges: Ranges = field(compare=False)

    @staticmethod
    def by(ranges: Ranges) -> Said:
        """What these ranges say."""
        return Said((ranges.DEFAULT, *ranges.items()), ranges)


def _needs_work(size: Size) -> bool:
    return not isinstance(size, int) and any(atom.args for monomial, _ in size.terms for atom, _ in monomial)


def _in_order(m: IndexingMap) -> bool:
    """Whether each range variable is used, and no coordinate of a dimension of size 1."""
    names = m.variables
    return all(r(j).text in names for j in range(len(m.ranges))) and not any(
        size == 1 and name in names for name, size in m.extents().items()
    )


@lru_cache(1 << 14)
def _simplify(m: IndexingMap, said: Said, keep_ranges: bool) -> IndexingMap:
    ranges = said.ranges
    bounds: Bounds = {name: (0, size - 1) for name, size in m.extents().items()}
    known = _facts_within(tuple(bounds.items()), said)
    conditions = _conditions(m.conditions, known)
    if conditions is None:
        return nothing(m.domain, m.shape, m.ranges if keep_ranges else ())
    plain = {name: c for c in conditions if (name := _name(c.expr)) is not None}
    for name, c in plain.items():
        low, high = bounds[name]
        bounds[name] = ranges.greater(low, c.lo), ranges.lesser(high, c.hi - 1)
    tight = _facts_within(tuple(bounds.items()), said) if plain else known
    if not keep_ranges:
        # A range variable that is left one value has that value.
        plain = {name: c for name, c in plain.items() if not (name.startswith("$r") and len({*bounds[name]}) == 1)}
    rest = _conditions([c for c in conditions if _name(c.expr) is None], tight)
    if rest is None:
        return nothing(m.domain, m.shape, m.ranges if keep_ranges else ())
    indices = tuple([tight.simplify(index) for index in m.indices])
    kept = tuple(sorted([*plain.values(), *rest], key=str))
    found = IndexingMap(m.domain, m.shape, indices, m.ranges, kept, m.exact, m.data_dependent)
    return found if keep_ranges else _renumber(found, ranges)


def _renumber(m: IndexingMap, ranges: Ranges) -> IndexingMap:
    """The map without unused range variables (none of whose ranges is empty); the others are renumbered in order."""
    names = m.variables
    used = {j for j in range(len(m.ranges)) if r(j).text in names}
    # Where there is an element of the result, its dimensions are not empty; nor are those of what it reads.
    sure = {*m.domain, *[m.ranges[j] for j in used]}
    kept = [j for j, size in enumerate(m.ranges) if j in used or not (size in sure or ranges.less_equal(1, size))]
    if len(kept) == len(m.ranges):
        return m
    mapping: dict[str, Size] = {r(j).text: r(new) for new, j in enumerate(kept)}
    return IndexingMap(
        m.domain, m.shape, m.indices, tuple([m.ranges[j] for j in kept]), m.conditions, m.exact, m.data_dependent
    ).substitute(mapping)


# ---- conditions ---------------------------------------------------------------------------------------------------


def _conditions(conditions: tuple[Condition, ...] | list[Condition], known: Known) -> list[Condition] | None:
    """The conditions in normal form, those of one expression as one, without what always holds; None: never."""
    merged: dict[Size, Condition] = {}
    for condition in conditions:
        c = _normal(Condition(known.simplify(condition.expr), condition.lo, condition.hi))
        if (other := merged.get(c.expr)) is not None:
            c = Condition(c.expr, known.ranges.greater(c.lo, other.lo), known.ranges.lesser(c.hi, other.hi))
        merged[c.expr] = c
    kept: list[Condition] = []
    for c in merged.values():
        low, high = known.holds(c.expr - c.lo), known.holds(c.hi - 1 - c.expr)
        if low and high:
            continue
        if known.holds(c.lo - 1 - c.expr) or known.holds(c.expr - c.hi) or known.holds(c.lo - c.hi):
            return None
        kept.append(_clip(c, known, low, high))
    return kept


def _normal(c: Condition) -> Condition:
    """The condition without a constant term, without a common factor, and with a positive leading coefficient."""
    terms = dict(terms_of(c.expr))
    constant = terms.pop((), 0)
    expr, lo, hi = c.expr - constant, c.lo - constant, c.hi - constant
    if isinstance(expr, int):
        return Condition(0, lo, hi)
    if expr.terms[0][1] < 0:
        expr, lo, hi = -expr, 1 - hi, 1 - lo
    factor = gcd(*terms.values())
    if factor > 1:
        # lo <= factor * x  is  ceil(lo / factor) <= x.
        expr, lo, hi = floordiv(expr, factor), ceildiv(lo, factor), ceildiv(hi, factor)
    return Condition(expr, lo, hi)


def _clip(c: Condition, known: Known, low: bool, high: bool) -> Condition:
    """The condition with an end that always holds put where the expression itself ends, if that is known."""
    least, most = known.ends(c.expr)
    lo = least if low and least is not None else c.lo
    hi = most + 1 if high and most is not None else c.hi
    return Condition(c.expr, lo, hi)


def _name(size: Size) -> str | None:
    """The coordinate or range variable that a size is, if it is one."""
    atom = as_atom(size)
    return atom.text if atom is not None and atom.text.startswith("$") else None


# ---- sizes --------------------------------------------------------------------------------------------------------

Bounds = dict[str, tuple[Size, Size]]
"""The least and the greatest value of each coordinate and range variable."""


class Known:
    """What is known of coordinates and of symbols."""

    def __init__(self, bounds: Mapping[str, tuple[Size, Size]], ranges: Ranges) -> None:
        self.bounds = dict(bounds)
        self.ranges = ranges
        self.numeric = _Numeric(ranges, self.bounds)
        self._reached: dict[str, _Reached] = {}
        self._done: dict[Size, Size] = {}
        self._held: dict[Size, bool] = {}

    @staticmethod
    def within(bounds: Mapping[str, tuple[Size, Size]], ranges: Ranges) -> Known:
        """What is known within these bounds. The maps of a kernel have few, and ask the same again and again: what was
        found is kept."""
        return _facts_within(tuple(bounds.items()), Said.by(ranges))

    def holds(self, size: Size) -> bool:
        """Whether a size is known to be at least 0."""
        if isinstance(size, int):
            return size >= 0
        if size not in self._held:
            try:
                self._held[size] = self._positive(size, self.bounds.keys() & symbols_of(size))
            except DimLimitError:  # what would tell is too long a formula
                self._held[size] = False
        return self._held[size]

    def _positive(self, size: Size, names: set[str]) -> bool:
        low = self.numeric.bounds(size)[0]
        if low is not None and low >= 0:
            return True
        end = self._end(size, names, least=True)
        low = self.numeric.bounds(end)[0] if end != size else None
        if (low is not None and low >= 0) or self._bounded_quotient(size):
            return True
        other = size
        facts = [self._facts(name) for name in sorted(names)]
        for atom, reached in [pair for found in facts for pair in found.extrema]:
            other = _replaced(other, atom, reached)
        other = self._without_remainders(other, {factor for found in facts for factor in found.factors})
        return other != size and self.holds(other)

    def _facts(self, name: str) -> _Reached:
        if name not in self._reached:
            low, high = self.bounds[name]
            self._reached[name] = _reached(high + 1) if low == 0 else _Reached((), frozenset())
        return self._reached[name]

    def _without_remainders(self, size: Size, above_zero: set[Size]) -> Size:
        """What a size is at least where its remainders are as small, or as large, as they may be."""
        for atom in [atom for monomial, _ in terms_of(size) for atom, _ in monomial if atom.head == "mod"]:
            slope = linear_slope(size, atom.text) if atom.args else None
            if slope is None or not (atom.args[1] in above_zero or self.holds(atom.args[1] - 1)):
                continue
            end = 0 if self.holds(slope) else atom.args[1] - 1 if self.holds(-slope) else None
            if end is not None:
                size = replace_atoms(size, lambda a, atom=atom, end=end: end if a == atom else atom_size(a))
        return size

    def _bounded_quotient(self, size: Size) -> bool:
        """Whether `c + s * (x // b)` is known to be at least 0 because of how x compares with a multiple of b."""
        terms = dict(terms_of(size))
        constant = terms.pop((), 0)
        if len(terms) != 1:
            return False
        ((monomial, factor),) = terms.items()
        atom = as_atom(_term(monomial, 1))
        if atom is None or atom.head != "floordiv" or not self.holds(atom.args[1]):
            return False
        x, b = atom.args
        if factor > 0:
            return self.holds(x + constant // factor * b)
        return self.holds((constant // -factor + 1) * b - 1 - x)

    def _end(self, size: Size, names: set[str], least: bool) -> Size:
        """The minimum (or maximum) of a size over the coordinates in which it is linear."""
        for name in sorted(names):
            if (slope := linear_slope(size, name)) is None:
                continue
            low, high = self.bounds[name]
            if self.holds(slope):
                size = substitute(size, {name: low if least else high})
            elif self.holds(-slope):
                size = substitute(size, {name: high if least else low})
        return size

    def ends(self, size: Size) -> tuple[int | None, int | None]:
        """The least and the greatest value of a size."""
        return self.numeric.bounds(size)

    def simplify(self, size: Size) -> Size:
        """The size in a simpler formula."""
        if isinstance(size, int):
            return size
        if size not in self._done:
            self._done[size] = self._recombine(replace_atoms(size, self._atom))
        return self._done[size]

    def _recombine(self, size: Size) -> Size:
        """The size with `k*(x // k) + x % k` written as x, wherever that leaves fewer functions."""
        while isinstance(size, Dim):
            for found in _mods(size):
                x, k = found.atom.args
                other = size + found.factor * (x - k * self._divide(x, k)[0] - atom_size(found.atom))
                if _functions(other) < _functions(size):
                    size = other
                    break
            else:
                return size
        return size

    def _atom(self, atom: Atom) -> Size:
        if not atom.args:
            low, high = self.bounds.get(atom.text, (0, 1))
            return low if low == high else atom_size(atom)
        args = [self.simplify(arg) for arg in atom.args]
        if atom.head in ("min", "max"):
            return self._extremum(atom.head, args)
        quotient, remainder = self._divide(args[0], args[1])
        return quotient if atom.head == "floordiv" else remainder

    def _extremum(self, head: str, args: list[Size]) -> Size:
        kept: list[Size] = []
        for i, x in enumerate(args):
            others = [*kept, *args[i + 1 :]]
            if not any(self.holds(x - y if head == "min" else y - x) for y in others):
                kept.append(x)
        return apply(head, kept)

    def _divide(self, a: Size, b: Size) -> tuple[Size, Size]:
        """`a // b` and `a % b`."""
        for quotient in self._quotients(a, b):
            rest = a - quotient * b
            if self.holds(rest) and self.holds(b - 1 - rest):
                return quotient, rest
        if self.holds(b):
            # Sizes that divide are not 0 where anything is read, and so this one is positive.
            for factor, coarse, fine in self._splits(a, b):
                if self.holds(fine) and self.holds(factor - 1 - fine):
                    rest = exact_div(b, factor)
                    assert rest is not None, f"{factor} is a factor of {b}"
                    whole, part = self._divide(coarse, rest)
                    return whole, factor * part + fine
            if (nested := self._divide_nested(a, b)) is not None:
                return nested
        return floordiv(a, b), mod(a, b)

    def _divide_nested(self, a: Size, b: Size) -> tuple[Size, Size] | None:
        """`a // b` and `a % b` of a quotient by a symbolic size, and of a remainder by a multiple of `b`."""
        atom = as_atom(a)
        if atom is None or len(atom.args) != 2 or not self.holds(atom.args[1]):
            return None
        x, divisor = atom.args
        if atom.head == "floordiv":
            return self._divide(x, divisor * b)[0], mod(a, b)
        if atom.head == "mod" and (times := exact_div(divisor, b)) is not None and self.holds(times):
            quotient, remainder = self._divide(x, b)
            return self._divide(quotient, times)[1], remainder
        return None

    def _quotients(self, a: Size, b: Size) -> Iterator[Size]:
        """What `a // b` may be: 0, the only value within its bounds, and sums of the coordinates that fill `b`."""
        yield 0
        try:
            low, high = self.numeric.bounds(floordiv(a, b))
        except DimError:
            return
        if low is not None and low == high:
            yield low
        if isinstance(b, int):
            # In canonical form -x is b - 1 times x, less a multiple of b.
            yield sum((_term(m, 1) for m, c in terms_of(a) if m and 2 * c > b), start=0)

    def _splits(self, a: Size, b: Size) -> Iterator[tuple[Size, Size, Size]]:
        """Factors of `b` with `a` as `factor * coarse + fine`."""
        seen: set[Size] = {1}
        for monomial, coefficient in terms_of(a):
            symbols = tuple([(atom, e) for atom, e in monomial if not _is_local(atom)])
            content = _term(symbols, gcd(coefficient, *[c for _, c in terms_of(b)]))
            if content in seen or exact_div(b, content) is None:
                continue
            seen.add(content)
            coarse: Size = 0
            for m, c in terms_of(a):
                multiple = exact_div(_term(m, c), content)
                coarse += 0 if multiple is None else multiple
            if coarse != 0:
                yield content, coarse, a - coarse * content


@lru_cache(1 << 8)
def _facts_within(bounds: tuple[tuple[str, tuple[Size, Size]], ...], said: Said) -> Known:
    return Known(dict(bounds), said.ranges)


class _Numeric(Ranges):
    """Ranges of symbols, and of coordinates as far as their bounds are numbers."""

    def __init__(self, base: Ranges, bounds: Mapping[str, tuple[Size, Size]]) -> None:
        found = dict(base)
        for name, (low, high) in bounds.items():
            least, most = base.bounds(low)[0], base.bounds(high)[1]
            least = 0 if least is None else least
            found[name] = Range(least, None if most is None or "_" in symbols_of(high) else max(most, least))
        super().__init__(found)
        self._default = base.DEFAULT

    def __getitem__(self, name: str) -> Range:
        return self._ranges.get(name, self._default)


class _Reached(NamedTuple):
    """What follows where a coordinate is below an extent: each `max(0, x)` in it that is x, and what is not 0."""

    extrema: Sequence[tuple[Atom, Size]]
    factors: frozenset[Size]


def _reached(extent: Size) -> _Reached:
    """What follows where an extent is above 0: a `max(0, x)` is, without which the extent would be 0."""
    extrema: list[tuple[Atom, Size]] = []
    pending = [extent]
    while pending:
        for monomial, _ in terms_of(pending.pop()):
            for atom, _ in monomial:
                pending += atom.args
                if atom.head == "max" and len(atom.args) == 2 and atom.args[0] == 0:
                    without = _replaced(extent, atom, 0)
                    if isinstance(without, int) and without <= 0:
                        extrema.append((atom, atom.args[1]))
    terms = terms_of(extent)
    factors = [atom_size(atom) for monomial, _ in terms for atom, _ in monomial] if len(terms) == 1 else []
    return _Reached(extrema, frozenset([*factors, *[x for _, x in extrema]]))


def _replaced(size: Size, atom: Atom, by: Size) -> Size:
    """A size with an atom replaced wherever it stands."""

    def found(a: Atom) -> Size:
        if a == atom:
            return by
        return apply(a.head, [_replaced(arg, atom, by) for arg in a.args]) if a.args else atom_size(a)

    return replace_atoms(size, found)


def _is_local(atom: Atom) -> bool:
    return any(name.startswith("$") for name in symbols_of(atom_size(atom)))


def _term(monomial: Monomial, coefficient: int) -> Size:
    return coefficient * product([atom_size(atom) ** e for atom, e in monomial])


def linear_slope(size: Size, name: str) -> Size | None:
    """What multiplies a coordinate that stands in a size linearly, and in no function."""
    total: Size = 0
    for monomial, coefficient in terms_of(size):
        rest: list[tuple[Atom, int]] = []
        found = 0
        for atom, exponent in monomial:
            if atom.text == name:
                found = exponent
            elif atom.args and name in symbols_of(atom_size(atom)):
                return None
            else:
                rest.append((atom, exponent))
        if found > 1:
            return None
        if found:
            total += _term(tuple(rest), coefficient)
    return total


class _Mod(NamedTuple):
    """A remainder in a size, and what multiplies it."""

    atom: Atom
    factor: Size


def _mods(size: Dim) -> Iterator[_Mod]:
    for monomial, coefficient in size.terms:
        for atom, exponent in monomial:
            if atom.head == "mod" and atom.args and exponent == 1:
                rest = tuple([(a, e) for a, e in monomial if a is not atom])
                yield _Mod(atom, _term(rest, coefficient))


def _functions(size: Size) -> int:
    """How many functions a formula has, inner ones included."""
    return sum(
        1 + sum(map(_functions, atom.args)) for monomial, _ in terms_of(size) for atom, _ in monomial if atom.args
    )
