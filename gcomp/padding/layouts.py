"""Where the real elements of a padded tensor lie.

Some symbols of a program are padded: `seq` is the size that tensors have, and the run-time length of the data is
another number, written `length("seq")` here. A size of the program is a formula; with the lengths in place of the
padded symbols it is the true size. What is real of a dimension is a *prefix*: as many elements as its true size.

Reshapes merge and split dimensions, and so a dimension is a row-major product of factors, and an element is real where
each digit of its index is within the prefix of its factor: `batch*seq` as the factors `(batch, seq)`. In canonical
form, a factor takes in what is not padded behind it (a prefix of rows is a prefix of their elements), so that equal
layouts are equal objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from gcomp.dims import Atom, DimLimitError, Range, Ranges, Size, exact_div, product, substitute, symbols_of
from gcomp.dims.algebra import atom_size, terms_of

Factors = tuple[Size, ...]
"""A dimension, outermost factor first; their product is its size."""
Layout = tuple[Factors, ...]
"""The factors of each dimension."""


@lru_cache(1024)
def length(symbol: str) -> Size:
    """The true value of a padded symbol. No text of a dimension has a `$`, so no user's symbol is this one."""
    return atom_size(Atom(f"$length.{symbol}"))


@lru_cache(1024)
def _excess(symbol: str) -> Size:
    return atom_size(Atom(f"$excess.{symbol}"))


class Sizes:
    """What padding does to sizes: which symbols are padded, and what is known of them."""

    def __init__(self, padded: Iterable[str], ranges: Ranges) -> None:
        self.padded = frozenset(padded)
        self._true = {name: length(name) for name in sorted(self.padded)}
        known = {name: ranges[name] for name in {*ranges, *self.padded}}
        known |= {str(length(name)): Range(ranges[name].lo, ranges[name].hi) for name in self.padded}
        known |= {str(_excess(name)): Range(0) for name in self.padded}
        self.ranges = Ranges(known)
        self._grows: dict[Size, bool] = {}

    def touches(self, size: Size) -> bool:
        """Whether padding changes a size."""
        return not isinstance(size, int) and not self.padded.isdisjoint(symbols_of(size))

    def true(self, size: Size) -> Size:
        """The true size, as a formula of lengths."""
        return substitute(size, self._true) if self.touches(size) else size

    def grows(self, size: Size) -> bool:
        """Whether a size is never less for greater values of the padded symbols, as far as that can be shown."""
        if size not in self._grows:
            self._grows[size] = not self.touches(size) or self._is_monotone(size) or self._difference_is_positive(size)
        return self._grows[size]

    def _difference_is_positive(self, size: Size) -> bool:
        try:
            beyond = substitute(size, {name: self._true[name] + _excess(name) for name in self.padded})
            return self.ranges.less_equal(self.true(size), beyond) is True
        except DimLimitError:
            return False

    def _is_monotone(self, size: Size) -> bool:
        """By the formula's form: sums of products with coefficients above zero, of what grows and is never negative."""
        for monomial, coefficient in terms_of(size):
            for atom, _ in monomial:
                if not self.touches(atom_size(atom)):
                    continue
                if coefficient < 0 or not self._atom_grows(atom):
                    return False
            if sum(exponent for _, exponent in monomial) > 1 and not all(self._is_count(atom) for atom, _ in monomial):
                return False
        return True

    def _is_count(self, atom: Atom) -> bool:
        low = self.ranges.bounds(atom_size(atom))[0]
        return low is not None and low >= 0

    def _atom_grows(self, atom: Atom) -> bool:
        match atom.head, atom.args:
            case _, ():
                return True
            case (("min" | "max"), args):
                return all(map(self.grows, args))
            case "floordiv", (top, int(divisor)):
                return divisor > 0 and self.grows(top)
            case _:
                return False

    # ---- layouts ----

    def plain(self, shape: Sequence[Size]) -> Layout:
        """Each dimension a prefix of its own."""
        return tuple([(size,) for size in shape])

    def is_plain(self, factors: Factors) -> bool:
        """Whether the real elements of a dimension are a prefix."""
        return len(factors) == 1

    def is_padded(self, factors: Factors) -> bool:
        """Whether some elements of a dimension may be padding."""
        return any(map(self.touches, factors))

    def canonical(self, factors: Iterable[Size]) -> Factors:
        """The factors with those that are not padded taken in by the one before."""
        found: list[Size] = []
        for factor in factors:
            if found and not self.touches(factor):
                found[-1] = found[-1] * factor
            elif factor != 1:
                # In front of a padded factor, a factor of 1 says nothing.
                found.append(factor)
        return tuple(found) or (1,)

    def reshaped(self, layout: Layout, shape: Sequence[Size]) -> Layout | None:
        """The layout of the same elements in row-major order with another shape; None where it is not of this form."""
        pending = list(reversed(self.canonical([f for factors in layout for f in factors])))
        found: list[Factors] = []
        for size in shape:
            taken: list[Size] = []
            rest: Size = size
            while rest != 1:
                if not pending:
                    return None
                factor = pending.pop()
                whole = exact_div(rest, factor)
                if whole is not None:
                    taken.append(factor)
                    rest = whole
                    continue
                inner = exact_div(factor, rest)
                if inner is None or self.touches(inner):
                    return None
                taken.append(rest)
                pending.append(inner)
                rest = 1
            found.append(self.canonical(taken))
        return tuple(found) if all(f == 1 for f in pending) else None


def extent(factors: Factors) -> Size:
    """The size of a dimension."""
    return product(factors)
