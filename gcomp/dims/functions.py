"""Functions of whole sizes: minima, maxima, products, symbols and substitution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Literal

from gcomp.dims.algebra import (
    CACHE,
    Atom,
    Dim,
    DimError,
    Size,
    as_atom,
    as_size,
    atom_size,
    floordiv,
    mod,
    terms_of,
)


def product(sizes: Iterable[Size]) -> Size:
    """The product of all sizes; 1 if there are none."""
    result: Size = 1
    for size in sizes:
        result = result * as_size(size)
    return result


def dmin(*sizes: Size) -> Size:
    """The least of the sizes. Raises DimError if there are none."""
    return _extremum("min", tuple(map(as_size, sizes)))


def dmax(*sizes: Size) -> Size:
    """The greatest of the sizes. Raises DimError if there are none."""
    return _extremum("max", tuple(map(as_size, sizes)))


@lru_cache(CACHE)
def _extremum(head: Literal["min", "max"], sizes: tuple[Size, ...]) -> Size:
    if not sizes:
        raise DimError(f"{head} of no sizes")
    best = min if head == "min" else max
    # Sizes are comparable when they differ by a constant: the constant to keep, by the rest of the size.
    kept: dict[Size, int] = {}
    pending = list(sizes)
    while pending:
        size = pending.pop()
        atom = as_atom(size)
        if atom is not None and atom.head == head and atom.args:
            pending.extend(atom.args)
            continue
        constant = dict(terms_of(size)).get((), 0)
        rest = size - constant
        kept[rest] = best(constant, kept.get(rest, constant))
    args = sorted((rest + kept[rest] for rest in kept), key=lambda size: (isinstance(size, Dim), str(size)))
    return args[0] if len(args) == 1 else atom_size(Atom(head, tuple(args)))


@lru_cache(CACHE)
def symbols_of(size: Size) -> frozenset[str]:
    """The names of the symbols that occur in `size`."""
    names: set[str] = set()
    for monomial, _ in terms_of(size):
        for atom, _ in monomial:
            names.update(*map(symbols_of, atom.args)) if atom.args else names.add(atom.head)
    return frozenset(names)


_FUNCTIONS: dict[str, Callable[..., Size]] = {"floordiv": floordiv, "mod": mod, "min": dmin, "max": dmax}


def apply(head: str, args: Iterable[Size]) -> Size:
    """The atom function `head` (floordiv, mod, min or max) of `args`, simplified."""
    return _FUNCTIONS[head](*args)


def replace_atoms(size: Size, replacement: Callable[[Atom], Size]) -> Size:
    """`size` with each of its outermost atoms replaced."""
    found = {atom: replacement(atom) for monomial, _ in terms_of(size) for atom, _ in monomial}
    if all(isinstance(new, Dim) and new.text == atom.text for atom, new in found.items()):
        return size
    total: Size = 0
    for monomial, coefficient in terms_of(size):
        term: Size = coefficient
        for atom, exponent in monomial:
            term = term * (found[atom] if exponent == 1 else found[atom] ** exponent)
        total = total + term
    return total


def substitute(size: Size, mapping: Mapping[str, Size]) -> Size:
    """`size` with the symbols that `mapping` names replaced, all at once, and simplified."""
    if symbols_of(size).isdisjoint(mapping):
        return size

    def replacement(atom: Atom) -> Size:
        if atom.args:
            return apply(atom.head, [substitute(arg, mapping) for arg in atom.args])
        return as_size(mapping[atom.head]) if atom.head in mapping else atom_size(atom)

    return replace_atoms(size, replacement)
