"""True sizes as numbers of the running program, and masks of the elements that are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.dims import Atom, Size, product
from gcomp.dims.algebra import atom_size, terms_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.padding.layouts import Factors, Layout, Sizes, extent, length

_I32 = 1 << 31


class Lengths:
    """Builds true sizes and masks where a builder inserts; what was built is used again as long as it is in scope."""

    def __init__(self, b: Builder, sizes: Sizes, values: Mapping[str, SSAValue]) -> None:
        self.b, self.sizes = b, sizes
        self._lengths = {str(length(name)): value for name, value in values.items()}
        self._scopes: list[dict[Any, SSAValue]] = [{}]

    def enter(self) -> None:
        """Begin a region: what is built inside it is not seen outside."""
        self._scopes.append({})

    def leave(self) -> None:
        """End a region."""
        self._scopes.pop()

    def _find(self, key: Any) -> SSAValue | None:
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def true(self, size: Size, element: str = "i64") -> SSAValue:
        """The true value of a size as a rank 0 tensor."""
        found = self._find(("true", size, element))
        if found is None:
            number = self.formula(self.sizes.true(size)) if self.sizes.touches(size) else self.b.dim(size)
            found = self._scopes[-1]["true", size, element] = self.b.convert(number, element)
        return found

    def formula(self, size: Size) -> SSAValue:
        """A formula over lengths and symbols as an i64 of rank 0."""
        total: SSAValue | None = None
        for monomial, coefficient in terms_of(size):
            term = None if coefficient == 1 and monomial else self.b.constant(coefficient, "i64")
            for atom, exponent in monomial:
                value = self._atom(atom)
                for _ in range(exponent):
                    term = value if term is None else self.b.multiply(term, value)
            assert term is not None
            total = term if total is None else self.b.add(total, term)
        return self.b.constant(0, "i64") if total is None else total

    def _atom(self, atom: Atom) -> SSAValue:
        if not atom.args:
            found = self._lengths.get(atom.head)
            return self.b.dim(atom_size(atom)) if found is None else found
        first, *others = map(self.formula, atom.args)
        match atom.head:
            case "min" | "max":
                for other in others:
                    first = (self.b.minimum if atom.head == "min" else self.b.maximum)(first, other)
                return first
            case _:
                return self._divided(atom, first, others[0])

    def _divided(self, atom: Atom, a: SSAValue, n: SSAValue) -> SSAValue:
        """Floor division and its remainder; StableHLO's own round towards zero."""
        b, known = self.b, self.sizes.ranges
        if all((known.bounds(arg)[0] or 0) >= 0 and known.bounds(arg)[0] is not None for arg in atom.args):
            return b.emit(hlo.DivideOp if atom.head == "floordiv" else hlo.RemainderOp, a, n)
        zero = b.constant(0, "i64")
        rest = b.emit(hlo.RemainderOp, a, n)
        differs = b.compare(b.compare(rest, zero, "LT"), b.compare(n, zero, "LT"), "NE")
        below = b.emit(hlo.AndOp, differs, b.compare(rest, zero, "NE"))
        if atom.head == "mod":
            return b.select(below, b.add(rest, n), rest)
        quotient = b.emit(hlo.DivideOp, a, n)
        return b.select(below, b.subtract(quotient, b.constant(1, "i64")), quotient)

    # ---- masks ----

    def index_element(self, size: Size) -> str:
        """The integer type that indices below a size fit."""
        greatest = self.sizes.ranges.bounds(size)[1]
        return "i32" if greatest is not None and greatest < _I32 else "i64"

    def digits(self, factors: Factors) -> list[SSAValue]:
        """The index along a dimension, as one digit for each factor: vectors of its size."""
        b, size = self.b, extent(factors)
        element = self.index_element(size)
        index, found = b.iota((size,), 0, element), list[SSAValue]()
        for i, factor in enumerate(factors):
            inner, digit = product(factors[i + 1 :]), index
            if inner != 1:
                digit = b.emit(hlo.DivideOp, digit, b.broadcast(b.dim(inner, element), (size,), ()))
            if i:
                digit = b.emit(hlo.RemainderOp, digit, b.broadcast(b.dim(factor, element), (size,), ()))
            found.append(digit)
        return found

    def real(self, factors: Factors) -> SSAValue:
        """Which elements along a dimension are real: a vector of booleans."""
        found = self._find(("real", factors))
        if found is None:
            size, element = extent(factors), self.index_element(extent(factors))
            for factor, digit in zip(factors, self.digits(factors), strict=True):
                if self.sizes.touches(factor):
                    bound = self.b.broadcast(self.true(factor, element), (size,), ())
                    inside = self.b.compare(digit, bound, "LT")
                    found = inside if found is None else self.b.emit(hlo.AndOp, found, inside)
            assert found is not None
            self._scopes[-1]["real", factors] = found
        return found

    def mask(self, layout: Layout, dimensions: Sequence[int]) -> SSAValue | None:
        """Where an element is real as far as these dimensions say; None where all are."""
        shape, mask = [extent(factors) for factors in layout], None
        for i in dimensions:
            if self.sizes.is_padded(layout[i]):
                inside = self.b.broadcast(self.real(layout[i]), shape, (i,))
                mask = inside if mask is None else self.b.emit(hlo.AndOp, mask, inside)
        return mask

    def kept(self, value: SSAValue, layout: Layout, dimensions: Sequence[int], other: SSAValue) -> SSAValue:
        """A value with a scalar in place of what is padding along these dimensions."""
        mask = self.mask(layout, dimensions)
        if mask is None:
            return value
        shape = [extent(factors) for factors in layout]
        return self.b.emit(hlo.SelectOp, mask, value, self.b.broadcast(other, shape, ()))

    def constant(self, value: Any, like: SSAValue) -> SSAValue:
        """A scalar of a tensor's element type."""
        return self.b.scalar_like(like, value)
