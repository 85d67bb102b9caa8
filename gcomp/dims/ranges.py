"""What is known about the values of symbols, and what follows for sizes: bounds and three-valued comparisons.

`bounds` is sound: for every assignment in range under which the size is defined, its value lies within. The
comparisons answer True when the claim holds for every assignment, False when it fails for every assignment,
and None when neither was proved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, lcm
from typing import cast

from gcomp.dims import intervals
from gcomp.dims.algebra import (
    Atom,
    Dim,
    DimError,
    DimLimitError,
    Monomial,
    Size,
    abridge,
    atom_size,
    exact_div,
    terms_of,
)
from gcomp.dims.congruence import Congruence, congruence
from gcomp.dims.functions import apply, dmax, dmin, replace_atoms
from gcomp.dims.intervals import EVERYTHING, Interval

_RANGE = re.compile(r"\s*(-?[0-9]{1,39})\s*(?:(\.\.)\s*(-?[0-9]{1,39})?\s*(?:step\s+([0-9]{1,39}))?)?\s*\Z")
_MAX_REFINED_TERMS = 32
_MAX_REFINED_DEGREE = 6
_MAX_SPLITS = 3
_MAX_CASES = 8


@dataclass(frozen=True, slots=True)
class Range:
    """The integers from `lo` to `hi` (None: no limit) that are multiples of `multiple_of`.

    The ends are moved inwards to multiples, so that equal sets are equal ranges. Raises DimError when empty.
    """

    lo: int = 1
    hi: int | None = None
    multiple_of: int = 1

    def __post_init__(self) -> None:
        step = self.multiple_of
        if step < 1:
            raise DimError(f"the step of a range must be at least 1, not {step}")
        lo = -(-self.lo // step) * step
        hi = None if self.hi is None else self.hi // step * step
        if hi is not None and lo > hi:
            raise DimError(f"the range {self.lo}..{self.hi}{f' step {step}' if step > 1 else ''} is empty")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)
        if lo == hi:
            object.__setattr__(self, "multiple_of", 1)

    def __contains__(self, value: int) -> bool:
        return value >= self.lo and (self.hi is None or value <= self.hi) and value % self.multiple_of == 0

    def __str__(self) -> str:
        if self.lo == self.hi:
            return str(self.lo)
        step = f" step {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"{self.lo}..{'' if self.hi is None else self.hi}{step}"

    def to_json(self) -> str:
        return str(self)

    @staticmethod
    def from_json(value: object) -> Range:
        if not isinstance(value, str):
            raise DimError(f"a range must be text such as '1..64', not {type(value).__name__}")
        return parse_range(value)


def parse_range(text: str) -> Range:
    """The range written as `4`, `1..64`, `1..` or `8..1024 step 8`. Raises DimError for anything else.

    With a step the lower end must be one of its multiples: only multiples of the step are in the range.
    """
    match = _RANGE.match(text)
    if match is None:
        raise DimError(f"bad range {abridge(repr(text))}; write '4', '1..64', '1..' or '8..1024 step 8'")
    lo = int(match[1])
    if not match[2]:
        return Range(lo, lo)
    step = int(match[4] or 1)
    if step and lo % step:
        raise DimError(f"bad range {abridge(repr(text))}: {lo} is not a multiple of the step {step}")
    return Range(lo, int(match[3]) if match[3] else None, step)


DimSpec = int | str | tuple[int, int]
"""What a user says of a symbol: a size, a range `"1..64"` or `"8..512 step 8"`, or a pair (least, greatest)."""

MAX_SIZE = (1 << 63) - 1
"""The greatest size of a dimension."""


def range_of(spec: DimSpec) -> Range:
    """The range that a user gave for a symbol. Raises DimError for what is none, and for sizes that there are not."""
    given: object = spec  # users may pass anything
    if isinstance(given, int) and not isinstance(given, bool):
        found = Range(given, given)
    elif isinstance(given, str):
        found = parse_range(given)
    else:
        least, greatest = _ends(given)
        found = Range(least, greatest)
    if found.lo < 0 or max(found.lo, found.hi or 0) > MAX_SIZE:
        raise DimError(f"bad range {abridge(repr(spec))}; sizes are 0 to {MAX_SIZE:,}")
    return found


def _ends(given: object) -> tuple[int, int]:
    """A pair of sizes. Raises DimError for anything else."""
    shown = abridge(repr(given))
    ends = cast("tuple[object, ...]", given) if isinstance(given, tuple) else ()
    if len(ends) != 2 or not all(isinstance(end, int) and not isinstance(end, bool) for end in ends):
        raise DimError(f"bad range {shown}; write 4, '1..64' or (1, 64)")
    return cast("tuple[int, int]", ends)


_noting: list[dict[Size, None]] = []
_MOST_NOTED = 64


@contextmanager
def comparisons(noted: dict[Size, None] | None) -> Generator[None]:
    """Record in `noted` each formula whose sign is queried in the body (differences of compared sizes): a decision
    may change only where such a sign changes. With None, nothing is recorded."""
    if noted is None:
        yield
        return
    _noting.append(noted)
    try:
        yield
    finally:
        _noting[:] = [other for other in _noting if other is not noted]


def _note(formula: Size) -> None:
    for noted in _noting:
        if isinstance(formula, Dim) and len(noted) < _MOST_NOTED:
            noted[formula] = None


class Ranges(Mapping[str, Range]):
    """The ranges of symbols. A symbol that was not named has the default range `1..`."""

    DEFAULT = Range()

    def __init__(self, ranges: Mapping[str, Range] | None = None) -> None:
        self._ranges = dict(ranges or {})
        self._congruences: dict[str, Congruence] = {
            name: (0, r.lo) if r.lo == r.hi else (r.multiple_of, 0) for name, r in self._ranges.items()
        }
        self._cache: dict[tuple[Dim, int], Interval] = {}

    def __getitem__(self, name: str) -> Range:
        return self._ranges.get(name, self.DEFAULT)

    def __contains__(self, name: object) -> bool:
        return name in self._ranges

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __repr__(self) -> str:
        return f"Ranges({', '.join(f'{name}={r}' for name, r in self._ranges.items())})"

    def with_ranges(self, ranges: Mapping[str, Range]) -> Ranges:
        """These ranges, with those of `ranges` replaced or added."""
        return Ranges({**self._ranges, **ranges})

    def to_json(self) -> dict[str, str]:
        return {name: r.to_json() for name, r in sorted(self._ranges.items())}

    @staticmethod
    def from_json(value: Mapping[str, object]) -> Ranges:
        return Ranges({name: Range.from_json(text) for name, text in value.items()})

    def bounds(self, size: Size) -> tuple[int | None, int | None]:
        """The least and the greatest value that `size` can have; None where no limit is known."""
        if isinstance(size, int):
            return size, size
        low, high = self._tighten(size, self._interval(size, _MAX_SPLITS))
        return (low if isinstance(low, int) else None), (high if isinstance(high, int) else None)

    def equal(self, a: Size, b: Size) -> bool | None:
        """Is `a == b`: always (True), never (False), or not known (None)?"""
        try:
            difference = a - b
            if isinstance(difference, Dim):
                _note(difference)
                difference = _without_mod(difference)
        except DimLimitError:  # though a and b themselves are no formulas that are too large
            return None
        low, high = self.bounds(difference)
        if low == 0 == high:
            return True
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        modulus, remainder = congruence(difference, self._congruences)
        return False if remainder and (modulus == 0 or remainder % modulus) else None

    def less_equal(self, a: Size, b: Size) -> bool | None:
        """Is `a <= b`: always (True), never (False), or not known (None)?"""
        try:
            _note(difference := b - a)
        except DimLimitError:
            return None
        low, high = self.bounds(difference)
        if low is not None and low >= 0:
            return True
        return False if high is not None and high < 0 else None

    def lesser(self, a: Size, b: Size) -> Size:
        """The minimum of two sizes: one of them, where it is known to be."""
        return a if self.less_equal(a, b) else b if self.less_equal(b, a) else dmin(a, b)

    def greater(self, a: Size, b: Size) -> Size:
        """The maximum of two sizes: one of them, where it is known to be."""
        return b if self.less_equal(a, b) else a if self.less_equal(b, a) else dmax(a, b)

    def divisible(self, a: Size, k: Size) -> bool | None:
        """Is `a` a multiple of `k`: always (True), never (False), or not known (None)?

        Raises DimError for the constant k = 0.
        """
        if k == 0:
            raise DimError(f"divisibility of '{a}' by zero")
        if exact_div(a, k) is not None:
            return True
        if isinstance(k, Dim):
            return None
        return self.equal(a % k, 0)

    def _interval(self, size: Size, splits: int) -> Interval:
        """The intersection of all the bounds below; `splits` limits how many minima and maxima are split."""
        if isinstance(size, int):
            return size, size
        key = (size, splits)
        if key not in self._cache:
            box = {atom: self._atom(atom) for monomial, _ in size.terms for atom, _ in monomial}
            result = _termwise(size, box)
            if len(size.terms) > 1 and len(size.terms) <= _MAX_REFINED_TERMS:
                for refined in (
                    self._bounds_by_shifting,
                    self._floors_relaxed,
                    self._split_extremum,
                    self._mods_expanded,
                ):
                    try:
                        result = intervals.intersect(result, refined(size, box, splits))
                    except DimLimitError:
                        continue
            self._cache[key] = result
        return self._cache[key]

    def _tighten(self, size: Dim, interval: Interval) -> Interval:
        modulus, remainder = congruence(size, self._congruences)
        if modulus == 0:
            return remainder, remainder
        low, high = interval
        low = low + (remainder - low) % modulus if isinstance(low, int) else low
        high = high - (high - remainder) % modulus if isinstance(high, int) else high
        return intervals.intersect(interval, (low, high))

    def _atom(self, atom: Atom) -> Interval:
        if not atom.args:
            known = self[atom.head]
            return known.lo, inf if known.hi is None else known.hi
        args = [self._interval(arg, 0) for arg in atom.args]
        return _ATOM_INTERVALS[atom.head](args)

    def _bounds_by_shifting(self, size: Dim, box: dict[Atom, Interval], splits: int) -> Interval:
        """Bounds after writing each atom as its lower (upper) end plus (minus) a non-negative rest.

        This sees what terms cancel: with a, b >= 1, `a*b - a` becomes `x*y + y >= 0`.
        """
        degree = max(sum(exponent for _, exponent in monomial) for monomial, _ in size.terms)
        if degree == 1 or degree > _MAX_REFINED_DEGREE:
            return EVERYTHING
        result = EVERYTHING
        for end, direction in ((0, 1), (1, -1)):
            rests = dict(box)
            replacements: dict[Atom, Size] = {}
            for atom, interval in box.items():
                anchor = interval[end]
                if isinstance(anchor, int):
                    width = intervals.add(interval, (-anchor, -anchor))
                    rests[atom] = width if end == 0 else intervals.negate(width)
                    replacements[atom] = anchor + direction * atom_size(atom)
            moved = replace_atoms(size, lambda atom, r=replacements: r.get(atom, atom_size(atom)))
            result = intervals.intersect(result, _termwise(moved, rests))
        return result

    def _floors_relaxed(self, size: Dim, box: dict[Atom, Interval], splits: int) -> Interval:
        """Bounds after replacing `k*(x // k)` by `x` minus a remainder in [0, k-1]."""
        floors = [(atom, coefficient) for atom, coefficient in _linear_atoms(size) if _constant_divisor(atom)]
        if not floors:
            return EVERYTHING
        scale = lcm(*(_constant_divisor(atom) for atom, _ in floors))
        relaxed = scale * size
        remainders: Interval = (0, 0)
        for atom, coefficient in floors:
            divisor = _constant_divisor(atom)
            weight = coefficient * (scale // divisor)
            relaxed = relaxed + weight * (atom.args[0] - divisor * atom_size(atom))
            remainders = intervals.add(remainders, intervals.multiply((-weight, -weight), (0, divisor - 1)))
        return intervals.divide_inwards(intervals.add(self._interval(relaxed, splits), remainders), scale)

    def _split_extremum(self, size: Dim, box: dict[Atom, Interval], splits: int) -> Interval:
        """Bounds from putting each argument in place of a `min` or `max`: one of them is its value."""
        result = EVERYTHING
        extrema = [(atom, c) for atom, c in _linear_atoms(size) if atom.head in ("min", "max") and atom.args]
        for atom, coefficient in extrema[:_MAX_SPLITS] if splits else ():
            rest = size - coefficient * atom_size(atom)
            cases = [self._interval(rest + coefficient * arg, splits - 1) for arg in atom.args[:_MAX_CASES]]
            lower = (atom.head == "min") == (coefficient > 0)
            low, high = intervals.minimum(cases) if lower else intervals.maximum(cases)
            if len(atom.args) > _MAX_CASES:
                # The value may be a case that was left out; only the bound that every case implies remains.
                low, high = (-inf, high) if lower else (low, inf)
            result = intervals.intersect(result, (low, high))
        return result

    def _mods_expanded(self, size: Dim, box: dict[Atom, Interval], splits: int) -> Interval:
        if not any(atom.head == "mod" and atom.args for atom in box):
            return EVERYTHING
        return self._interval(_without_mod(size), splits)


_ATOM_INTERVALS: dict[str, Callable[[list[Interval]], Interval]] = {
    "floordiv": lambda args: intervals.floordiv(*args),
    "mod": lambda args: intervals.modulo(*args),
    "min": intervals.minimum,
    "max": intervals.maximum,
}


def _termwise(size: Size, box: Mapping[Atom, Interval]) -> Interval:
    total: Interval = (0, 0)
    for monomial, coefficient in terms_of(size):
        term: Interval = (coefficient, coefficient)
        for atom, exponent in monomial:
            term = intervals.multiply(term, intervals.power(box[atom], exponent))
        total = intervals.add(total, term)
    return total


def _linear_atoms(size: Dim) -> list[tuple[Atom, int]]:
    def alone(monomial: Monomial) -> bool:
        return len(monomial) == 1 and monomial[0][1] == 1

    return [(monomial[0][0], coefficient) for monomial, coefficient in size.terms if alone(monomial)]


def _constant_divisor(atom: Atom) -> int:
    """The divisor of a floor division by a constant (positive in canonical form); 0 for other atoms."""
    return atom.args[1] if atom.head == "floordiv" and atom.args and isinstance(atom.args[1], int) else 0


def _without_mod(size: Size) -> Size:
    """`size` with every `x % y` written as `x - y*(x // y)`."""

    def expand(atom: Atom) -> Size:
        if not atom.args:
            return atom_size(atom)
        args = [_without_mod(arg) for arg in atom.args]
        if atom.head == "mod":
            return args[0] - args[1] * (args[0] // args[1])
        return apply(atom.head, args)

    return replace_atoms(size, expand)
