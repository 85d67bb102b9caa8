"""Symbolic sizes: canonical integer polynomials over symbols and `floordiv`, `mod`, `min`, `max` of sizes.

A size is an `int` or a `Dim`. Every operation returns a canonical result: constants are plain ints, and two
polynomials over symbols are equal as functions exactly when they are equal as objects. Symbols stand for any
integer here; what is known about their values lives in `gcomp.dims.ranges`. Division follows Python's floor
semantics; a simplification holds wherever the original expression is defined (its divisors are not zero).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from math import gcd, prod
from typing import SupportsIndex, cast

# Together these bound the time that a hostile formula can cost to well under a second.
MAX_TEXT = 1 << 12
MAX_TERMS = 256
MAX_DEGREE = 64
MAX_DEPTH = 32
MAX_COEFFICIENT = 1 << 127
MAX_WORK = 1 << 14
CACHE = 1 << 14

SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class DimError(ValueError):
    """A size that cannot be formed, parsed, evaluated or bound."""


class DimLimitError(DimError):
    """A formula that outgrew the limits on length, degree, nesting or coefficients."""


class Atom:
    """What polynomials are built from: a symbol, or a function of sizes. Compared by canonical text."""

    __slots__ = ("args", "depth", "head", "order", "text")

    def __init__(self, head: str, args: tuple[Size, ...] = ()) -> None:
        self.head = head
        self.args = args
        self.text = f"{head}({', '.join(map(str, args))})" if args else head
        self.order = (bool(args), self.text)
        self.depth = 1 + max((_depth(arg) for arg in args), default=-1)
        if len(self.text) > MAX_TEXT or self.depth > MAX_DEPTH:
            raise DimLimitError(f"size formula too large: {abridge(self.text)}")

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.text == other.text)

    def __repr__(self) -> str:
        return f"Atom({self.text!r})"


Monomial = tuple[tuple[Atom, int], ...]
"""Atoms with positive exponents, ordered by `Atom.order`; the empty monomial is the constant one."""
Terms = tuple[tuple[Monomial, int], ...]
"""Monomials with nonzero coefficients, in descending graded lexicographic order."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dim:
    """A size that is not constant: immutable, hashable, canonical; made by `symbol`, `parse`, operators."""

    terms: Terms
    text: str

    # NumPy integers must defer to the operators below instead of building object arrays.
    __array_ufunc__ = None

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self.text == other.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Dim({self.text!r})"

    def __bool__(self) -> bool:
        raise DimError(f"the truth of the symbolic size '{self}' is not known; compare it through Ranges")

    def __neg__(self) -> Size:
        return _multiply(self, -1)

    def __add__(self, other: Size) -> Size:
        size = _operand(other)
        return NotImplemented if size is None else _add(self, size)

    def __sub__(self, other: Size) -> Size:
        size = _operand(other)
        return NotImplemented if size is None else _add(self, -size)

    def __rsub__(self, other: Size) -> Size:
        size = _operand(other)
        return NotImplemented if size is None else _add(_multiply(self, -1), size)

    def __mul__(self, other: Size) -> Size:
        size = _operand(other)
        return NotImplemented if size is None else _multiply(self, size)

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Size:
        if not 0 <= exponent <= MAX_DEGREE:
            raise DimLimitError(f"exponent {exponent} of '{abridge(self.text)}' is not in 0..{MAX_DEGREE}")
        result: Size = 1
        for _ in range(exponent):
            result = _multiply(self, result)
        return result

    def __floordiv__(self, other: Size) -> Size:
        size = _operand(other)
        return NotImplemented if size is None else _floordiv(self, size)

    def __rfloordiv__(self, other: Size) -> Size:
        size = _operand(other)
        return NotImplemented if size is None else _floordiv(size, self)

    def __mod__(self, other: Size) -> Size:
        size = _operand(other)
        return NotImplemented if size is None else _mod(self, size)

    def __rmod__(self, other: Size) -> Size:
        size = _operand(other)
        return NotImplemented if size is None else _mod(size, self)

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value under `env`. Raises DimError for a missing symbol or a zero divisor."""
        total = 0
        for monomial, coefficient in self.terms:
            total += coefficient * prod(_evaluate_atom(atom, env) ** exponent for atom, exponent in monomial)
        return total


Size = int | Dim


def abridge(text: str) -> str:
    """`text`, cut to a length that fits an error message."""
    return text if len(text) <= 80 else f"{text[:80]}..."


def _operand(value: object) -> Size | None:
    if isinstance(value, Dim):
        return value
    try:
        return operator.index(cast(SupportsIndex, value))
    except TypeError:
        return None


def as_size(value: object) -> Size:
    """`value` as a Dim, or as a plain int if it is any kind of integer. Raises DimError otherwise."""
    size = _operand(value)
    if size is None:
        raise DimError(f"a size must be an integer or a symbolic size, not {type(value).__name__}")
    return size


# --- canonical polynomials ----------------------------------------------------------------------------------


def symbol(name: str) -> Dim:
    """The size called `name`, which matches `[A-Za-z_][A-Za-z0-9_]*`."""
    if not SYMBOL.match(name):
        raise DimError(f"not a dimension name: {abridge(repr(name))}")
    return atom_size(Atom(name))


def atom_size(atom: Atom) -> Dim:
    """The size that is this one atom."""
    return Dim((((((atom, 1),), 1)),), atom.text)


def as_atom(size: Size) -> Atom | None:
    """The atom that `size` is, if it is exactly one."""
    if isinstance(size, Dim) and len(size.terms) == 1:
        monomial, coefficient = size.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            return monomial[0][0]
    return None


def terms_of(size: Size) -> Terms:
    """The terms of any size; a constant has at most the empty monomial."""
    if isinstance(size, Dim):
        return size.terms
    return (((), size),) if size else ()


def _depth(size: Size) -> int:
    return max((atom.depth for monomial, _ in terms_of(size) for atom, _ in monomial), default=0)


def _order(monomial: Monomial) -> tuple[int, list[tuple[bool, str, int]]]:
    """Ascending order of this key is descending graded lexicographic order, which division relies on."""
    return -sum(exponent for _, exponent in monomial), [(*atom.order, -exponent) for atom, exponent in monomial]


def _polynomial(terms: Mapping[Monomial, int]) -> Size:
    ordered = tuple((monomial, terms[monomial]) for monomial in sorted(terms, key=_order) if terms[monomial])
    if not ordered:
        return 0
    if not ordered[0][0]:
        return ordered[0][1]
    if len(ordered) > MAX_TERMS:
        raise DimLimitError(f"size formula too large: {len(ordered)} terms")
    text = _polynomial_text(ordered)
    if -_order(ordered[0][0])[0] > MAX_DEGREE or len(text) > MAX_TEXT:
        raise DimLimitError(f"size formula too large: {abridge(text)}")
    if any(abs(coefficient) >= MAX_COEFFICIENT for _, coefficient in ordered):
        raise DimLimitError(f"size formula has too large a coefficient: {abridge(text)}")
    return Dim(ordered, text)


def _polynomial_text(terms: Terms) -> str:
    # A leading minus reads badly: the first positive term goes to the front.
    first = next((i for i, (_, coefficient) in enumerate(terms) if coefficient > 0), 0)
    pieces: list[str] = []
    for monomial, coefficient in (terms[first], *terms[:first], *terms[first + 1 :]):
        sign = ("-" if coefficient < 0 else "") if not pieces else (" - " if coefficient < 0 else " + ")
        factors = [atom.text if exponent == 1 else f"{atom.text}^{exponent}" for atom, exponent in monomial]
        if abs(coefficient) != 1 or not factors:
            # Past the limit no one reads the digits, and Python may refuse to print them.
            factors.insert(0, str(min(abs(coefficient), MAX_COEFFICIENT)))
        pieces.append(sign + "*".join(factors))
    return "".join(pieces)


@lru_cache(CACHE)
def _add(a: Size, b: Size) -> Size:
    terms = dict(terms_of(a))
    for monomial, coefficient in terms_of(b):
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _polynomial(terms)


@lru_cache(CACHE)
def _multiply(a: Size, b: Size) -> Size:
    left, right = terms_of(a), terms_of(b)
    if len(left) * len(right) > MAX_WORK:
        raise DimLimitError(f"size formula too large: product of '{abridge(str(a))}' and '{abridge(str(b))}'")
    terms: dict[Monomial, int] = {}
    for monomial_a, coefficient_a in left:
        for monomial_b, coefficient_b in right:
            monomial = _times(monomial_a, monomial_b)
            terms[monomial] = terms.get(monomial, 0) + coefficient_a * coefficient_b
    return _polynomial(terms)


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    exponents = dict(a)
    for atom, exponent in b:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return tuple(sorted(exponents.items(), key=lambda item: item[0].order))


def _cofactor(a: Monomial, b: Monomial) -> Monomial | None:
    """`a / b`, or None where `b` does not divide `a`."""
    if not b:
        return a
    exponents = dict(a)
    for atom, exponent in b:
        exponents[atom] = exponents.get(atom, 0) - exponent
        if exponents[atom] < 0:
            return None
    return tuple((atom, exponent) for atom, exponent in exponents.items() if exponent)


# --- division -----------------------------------------------------------------------------------------------


def _divide(a: Size, b: Size) -> tuple[Size, Size]:
    """The unique q, r with `a = q*b + r` whose remainder no multiple of the leading term of `b` can reduce.

    The leading coefficient of `b` must be positive. Coefficients of r at multiples of the leading monomial
    lie in [0, leading coefficient). `b` divides `a` over the integers exactly when r is 0.
    """
    (leading, unit), *lower = terms_of(b)
    pending, quotient, rest = dict(terms_of(a)), dict[Monomial, int](), dict[Monomial, int]()
    # Orders are unique, so the heap never compares monomials; terms are sorted, so this is a heap already.
    heap = [(_order(monomial), monomial) for monomial in pending]
    for _ in range(MAX_WORK):
        if not pending:
            return _polynomial(quotient), _polynomial(rest)
        monomial = heappop(heap)[1]
        coefficient = pending.pop(monomial)
        shared = _cofactor(monomial, leading)
        if shared is None:
            rest[monomial] = coefficient
            continue
        factor, rest[monomial] = divmod(coefficient, unit)
        if factor:
            quotient[shared] = factor
            for other, scale in lower:
                below = _times(shared, other)
                if below not in pending:
                    heappush(heap, (_order(below), below))
                pending[below] = pending.get(below, 0) - factor * scale
    raise DimLimitError(f"size formula too large: quotient of '{abridge(str(a))}' and '{abridge(str(b))}'")


def reduce_modulo(size: Size, zero: Size) -> Size:
    """A size of the same value wherever the size `zero` is 0: no term is left that its leading term divides.

    Where functions in `zero` are of what leads it, as in `n - 5*floordiv(n, 5)`, the term goes that is nested deepest:
    inputs keep the symbols that they bind.
    """
    if isinstance(zero, int) or isinstance(size, int):
        return size
    content = gcd(*(coefficient for _, coefficient in zero.terms)) * _split_sign(zero)
    primitive = _polynomial({monomial: coefficient // content for monomial, coefficient in zero.terms})
    (leading, _), *lower = terms_of(primitive)
    inner = {nested for monomial, _ in lower for atom, _ in monomial for nested in _nested(atom)}
    if any(atom not in inner for atom, _ in leading):
        return _divide(size, primitive)[1]
    return _replace_deepest(size, primitive)


def _nested(atom: Atom) -> set[Atom]:
    """The atoms of which a function is, and of which those are."""
    own = {inner for arg in atom.args for monomial, _ in terms_of(arg) for inner, _ in monomial}
    return own.union(*map(_nested, own))


def _replace_deepest(size: Size, zero: Size) -> Size:
    """The size with multiples of the one deepest term of `zero` replaced by the other terms; itself if none is."""
    depths = [max((atom.depth for atom, _ in monomial), default=0) for monomial, _ in terms_of(zero)]
    if depths.count(max(depths)) > 1:
        return size
    monomial, unit = terms_of(zero)[depths.index(max(depths))]
    found: Size = 0
    for own, coefficient in terms_of(size):
        cofactor = _cofactor(own, monomial)
        if cofactor is None or coefficient % unit:
            found += _polynomial({own: coefficient})
        else:
            found += _polynomial({own: coefficient}) - coefficient // unit * _polynomial({cofactor: 1}) * zero
    return found


def _split_sign(b: Size) -> int:
    if b == 0:
        raise DimError("division of a size by zero")
    return -1 if terms_of(b)[0][1] < 0 else 1


@lru_cache(CACHE)
def _floordiv(a: Size, b: Size) -> Size:
    if _split_sign(b) < 0:
        a, b = -a, -b
    quotient, rest = _divide(a, b)
    if isinstance(b, int):
        return quotient + _floordiv_by_constant(rest, b)
    if rest == 0:
        return quotient
    rest, b, factor = _cancel(rest, b)
    if factor != 1:
        return quotient + _floordiv(rest, b)
    return quotient + atom_size(Atom("floordiv", (rest, b)))


def _floordiv_by_constant(rest: Size, k: int) -> Size:
    """`rest // k` where every coefficient of `rest` is in [0, k)."""
    ceiling = _mod_ceiling(rest)
    if ceiling is not None and ceiling < k:
        return 0
    shared = gcd(k, *(coefficient for monomial, coefficient in terms_of(rest) if monomial))
    if shared > 1:
        rest, k = _divide(rest, shared)[0], k // shared
    if k == 1 or isinstance(rest, int):
        return rest // k
    nested = [
        monomial[0][0]
        for monomial, coefficient in rest.terms
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 and _by_constant(monomial[0][0], "floordiv")
    ]
    if len(nested) == 1:
        # p + x//c == (c*p + x)//c, and (y//c)//k == y//(c*k).
        numerator, inner = nested[0].args
        return _floordiv(inner * (rest - atom_size(nested[0])) + numerator, inner * k)
    return atom_size(Atom("floordiv", (rest, k)))


@lru_cache(CACHE)
def _mod(a: Size, b: Size) -> Size:
    if _split_sign(b) < 0:
        return -_mod(-a, -b)
    rest = _divide(a, b)[1]
    if isinstance(b, int):
        return _mod_by_constant(rest, b)
    if rest == 0:
        return 0
    rest, b, factor = _cancel(rest, b)
    return factor * _mod(rest, b) if factor != 1 else atom_size(Atom("mod", (rest, b)))


def _mod_by_constant(rest: Size, k: int) -> Size:
    """`rest % k` where every coefficient of `rest` is in [0, k)."""
    ceiling = _mod_ceiling(rest)
    if ceiling is not None and ceiling < k:
        return rest
    for monomial, coefficient in terms_of(rest):
        if len(monomial) == 1 and monomial[0][1] == 1 and _by_constant(monomial[0][0], "mod"):
            inner, divisor = monomial[0][0].args
            if isinstance(divisor, int) and coefficient * divisor % k == 0:
                return _mod(rest + coefficient * (inner - atom_size(monomial[0][0])), k)
    shared = gcd(k, *(coefficient for monomial, coefficient in terms_of(rest) if monomial))
    if shared > 1:
        constant = dict(terms_of(rest)).get((), 0) % shared
        return shared * _mod(_divide(rest, shared)[0], k // shared) + constant
    return atom_size(Atom("mod", (rest, k)))


def _by_constant(atom: Atom, head: str) -> bool:
    return atom.head == head and len(atom.args) == 2 and isinstance(atom.args[1], int)


def _mod_ceiling(size: Size) -> int | None:
    """An upper bound of a size with coefficients >= 0, if all its atoms are remainders by constants."""
    total = 0
    for monomial, coefficient in terms_of(size):
        term = coefficient
        for atom, exponent in monomial:
            if not _by_constant(atom, "mod") or not isinstance(divisor := atom.args[1], int):
                return None
            term *= (divisor - 1) ** exponent
        total += term
    return total


def _cancel(a: Size, b: Size) -> tuple[Size, Size, Size]:
    """`a` and `b` over their common factor (integer times monomial), and that factor."""
    terms = (*terms_of(a), *terms_of(b))
    common = dict(terms[0][0])
    for monomial, _ in terms:
        exponents = dict(monomial)
        common = {atom: min(e, exponents[atom]) for atom, e in common.items() if atom in exponents}
    factor = _polynomial({tuple(common.items()): gcd(*(coefficient for _, coefficient in terms))})
    if factor == 1:
        return a, b, 1
    return _divide(a, factor)[0], _divide(b, factor)[0], factor


def floordiv(a: Size, b: Size) -> Size:
    """`a // b`, rounded down. Raises DimError if `b` is the constant 0."""
    return _floordiv(as_size(a), as_size(b))


def mod(a: Size, b: Size) -> Size:
    """`a % b`, with the sign of `b`. Raises DimError if `b` is the constant 0."""
    return _mod(as_size(a), as_size(b))


def ceildiv(a: Size, b: Size) -> Size:
    """`a / b`, rounded up. Raises DimError if `b` is the constant 0."""
    a, b = as_size(a), as_size(b)
    if isinstance(b, int) and b > 0:
        return _floordiv(a + (b - 1), b)
    return -_floordiv(-a, b)


def exact_div(a: Size, b: Size) -> Size | None:
    """The q with `a == q*b` for all values of the symbols, or None where no polynomial q exists."""
    a, b = as_size(a), as_size(b)
    if b == 0:
        return None
    sign = _split_sign(b)
    quotient, rest = _divide(sign * a, sign * b)
    return quotient if rest == 0 else None


# --- values -------------------------------------------------------------------------------------------------


def _evaluate_atom(atom: Atom, env: Mapping[str, int]) -> int:
    if not atom.args:
        if atom.head not in env:
            raise DimError(f"no value for dimension '{atom.head}'")
        return env[atom.head]
    values = [evaluate(arg, env) for arg in atom.args]
    if atom.head == "min":
        return min(values)
    if atom.head == "max":
        return max(values)
    if values[1] == 0:
        raise DimError(f"division by zero: '{abridge(str(atom.args[1]))}' is 0 in '{abridge(atom.text)}'")
    return values[0] // values[1] if atom.head == "floordiv" else values[0] % values[1]


def evaluate(size: Size, env: Mapping[str, int]) -> int:
    """The value of `size` under `env`. Raises DimError for a missing symbol or a zero divisor."""
    return size.evaluate(env) if isinstance(size, Dim) else size
