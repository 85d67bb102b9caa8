"""The congruence domain: what a size is known to be modulo some integer (P. Granger, 1989).

A congruence (m, r) holds the integers equal to r modulo m; m = 0 holds r alone, m = 1 every integer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from math import gcd

from gcomp.dims.algebra import Atom, Size, terms_of

Congruence = tuple[int, int]

ANYTHING: Congruence = (1, 0)


def _reduce(modulus: int, remainder: int) -> Congruence:
    return modulus, remainder % modulus if modulus else remainder


def add(a: Congruence, b: Congruence) -> Congruence:
    return _reduce(gcd(a[0], b[0]), a[1] + b[1])


def multiply(a: Congruence, b: Congruence) -> Congruence:
    return _reduce(gcd(a[0] * b[0], a[0] * b[1], b[0] * a[1]), a[1] * b[1])


def join(a: Congruence, b: Congruence) -> Congruence:
    """What holds for both `a` and `b`."""
    return _reduce(gcd(a[0], b[0], a[1] - b[1]), a[1])


def congruence(size: Size, symbols: Mapping[str, Congruence]) -> Congruence:
    """The congruence of `size`, given those of its symbols."""
    total: Congruence = (0, 0)
    for monomial, coefficient in terms_of(size):
        term: Congruence = (0, coefficient)
        for atom, exponent in monomial:
            factor = _atom(atom, symbols)
            for _ in range(exponent):
                term = multiply(term, factor)
        total = add(total, term)
    return total


def _atom(atom: Atom, symbols: Mapping[str, Congruence]) -> Congruence:
    if not atom.args:
        return symbols.get(atom.head, ANYTHING)
    args = [congruence(arg, symbols) for arg in atom.args]
    if atom.head in ("min", "max"):
        return reduce(join, args)
    (modulus, remainder), divisor = args
    fixed = divisor[1] if divisor[0] == 0 else 0
    if atom.head == "mod":
        if fixed and modulus % fixed == 0:
            return 0, remainder % fixed
        # x % y differs from x by a multiple of y.
        return _reduce(gcd(modulus, *divisor), remainder)
    if fixed and modulus % fixed == 0:
        return _reduce(abs(modulus // fixed), remainder // fixed)
    return ANYTHING
