"""Tensors as functions of integer indices, and sizes as integer terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce

from gcomp import dims
from gcomp.dims import Size
from gcomp.dims.algebra import Atom
from gcomp.testing.prove.theory import Index, Term, z3


@dataclass(frozen=True)
class View:
    """A tensor: its element at an index, which is assumed to be in range."""

    shape: tuple[Size, ...]
    element: str
    at: Callable[[Index], Term]


@cache
def number(size: Size) -> Term:
    """A size as an integer term."""
    if isinstance(size, int):
        return z3.IntVal(size)
    return z3.simplify(sum((_monomial(m, c) for m, c in size.terms), z3.IntVal(0)))


def _monomial(monomial: Sequence[tuple[Atom, int]], coefficient: int) -> Term:
    term = z3.IntVal(coefficient)
    for atom, exponent in monomial:
        for _ in range(exponent):
            term = term * _atom(atom)
    return term


def _atom(atom: Atom) -> Term:
    if not atom.args:
        return z3.Int(atom.head)
    args = [number(a) for a in atom.args]
    match atom.head:
        case "min":
            return reduce(lambda a, b: z3.If(a < b, a, b), args)
        case "max":
            return reduce(lambda a, b: z3.If(a > b, a, b), args)
        case "floordiv":
            return args[0] / args[1]  # z3 rounds down where the divisor is positive, as sizes' divisors are
        case _:
            return args[0] % args[1]


@dataclass(frozen=True)
class _Digit:
    """`place / stride % size`: one index, or several as one, of the element at a row-major position below `total`."""

    place: Term
    stride: Size
    size: Size
    total: Size


@dataclass
class Facts:
    """What the ops of one side of a rule ask for and imply. `sort` is that of an element type.

    `requires` must hold for the ops to be valid; `known` follows from it. Going from indices to row-major positions and
    back is division by symbolic sizes, which solvers are bad at: what came from what is kept, so that there and back is
    no arithmetic, and digits of digits are digits.
    """

    sort: Callable[[str], Term]
    requires: list[Term] = field(default_factory=list[Term])
    known: list[Term] = field(default_factory=list[Term])
    # By the identity of terms, which the values keep alive.
    _origins: dict[int, tuple[Term, Index, tuple[Size, ...]]] = field(
        default_factory=dict[int, "tuple[Term, Index, tuple[Size, ...]]"]
    )
    _digits: dict[int, tuple[Term, _Digit]] = field(default_factory=dict[int, "tuple[Term, _Digit]"])

    def position(self, index: Index, shape: Sequence[Size]) -> Term:
        """The row-major position of an index."""
        parts: list[tuple[Term, Size]] = []
        for part in zip(index, shape, strict=True):
            parts.append(part)
            while len(parts) > 1 and (joined := self._joined(parts[-2], parts[-1])) is not None:
                parts[-2:] = [joined]
        if len(parts) < 2:
            return parts[0][0] if parts else z3.IntVal(0)
        place = z3.IntVal(0)
        for i, size in parts:
            place = place * number(size) + i
        place = z3.simplify(place)
        self._origins[place.get_id()] = (place, tuple(i for i, _ in parts), tuple(size for _, size in parts))
        return place

    def _joined(self, left: tuple[Term, Size], right: tuple[Term, Size]) -> tuple[Term, Size] | None:
        """Two neighbouring digits of one position as one digit; None if they are not."""
        known = [self._digits.get(term.get_id()) for term, _ in (left, right)]
        if known[0] is None or known[1] is None:
            return None
        high, low = known[0][1], known[1][1]
        whole = (high.size, low.size) == (left[1], right[1]) and high.stride == low.stride * low.size
        if not whole or high.place.get_id() != low.place.get_id():
            return None
        size = high.size * low.size
        return self._digit(_Digit(low.place, low.stride, size, low.total)), size

    def index(self, place: Term, shape: Sequence[Size]) -> Index:
        """The index at a row-major position that is in range."""
        if place.get_id() in self._origins:
            _, index, sizes = self._origins[place.get_id()]
            groups = regroup_shapes(shape, sizes)
            if len(groups) > 1:
                return tuple(i for mine, theirs in groups for i in self._within(index, sizes, theirs, shape, mine))
        if len(shape) == 1:
            return (place,)
        total = dims.product(shape)
        whole = self._digits[place.get_id()][1] if place.get_id() in self._digits else _Digit(place, 1, total, total)
        index = tuple(
            self._digit(_Digit(whole.place, dims.product(shape[k + 1 :]) * whole.stride, size, whole.total))
            for k, size in enumerate(shape)
        )
        if not all(isinstance(size, int) for size in shape):
            sums = (i * number(dims.product(shape[k + 1 :])) for k, i in enumerate(index))
            self.known.append(sum(sums, z3.IntVal(0)) == place)
        return index

    def _within(self, index: Index, sizes: Sequence[Size], theirs: range, shape: Sequence[Size], mine: range) -> Index:
        place = self.position(tuple(index[k] for k in theirs), [sizes[k] for k in theirs])
        return self.index(place, [shape[k] for k in mine])

    def _digit(self, digit: _Digit) -> Term:
        if digit.stride == 1 and digit.size == digit.total:
            return digit.place
        if isinstance(digit.stride, int) and isinstance(digit.size, int):
            term = digit.place / max(digit.stride, 1) % max(digit.size, 1)
        else:
            divided = z3.Function("digit", *[z3.IntSort()] * 4)
            term = divided(digit.place, number(digit.stride), number(digit.size))
            self.known += [term >= 0, term < number(digit.size)]
        self._digits[term.get_id()] = (term, digit)
        return term


def regroup_shapes(source: Sequence[Size], target: Sequence[Size]) -> list[tuple[range, range]]:
    """Runs of dimensions of two shapes without sizes of 1 that have equal products, as short as can be."""
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        a, b = i, j
        i, j = _run(source, target, i, j)
        groups.append((range(a, i), range(b, j)))
    return groups


def _run(source: Sequence[Size], target: Sequence[Size], i: int, j: int) -> tuple[int, int]:
    ends = [(x, y) for x in range(i + 1, len(source) + 1) for y in range(j + 1, len(target) + 1)]
    for x, y in sorted(ends, key=sum):
        if dims.product(source[i:x]) == dims.product(target[j:y]):
            rest = dims.product(source[x:]), dims.product(target[y:])
            # Only a run whose remainder can be equal too, for every value, is one.
            if rest[0] == rest[1]:
                return x, y
    return len(source), len(target)
