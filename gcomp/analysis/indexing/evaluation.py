"""What maps mean: the elements that are read, as sets and arrays of numbers. For tests, and for looking at maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from gcomp.analysis.indexing.maps import IndexingMap, d, r
from gcomp.dims import Atom, DimError, Size
from gcomp.dims import evaluate as value_of
from gcomp.dims.algebra import terms_of

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Values: TypeAlias = Mapping[str, Array]


def evaluate(m: IndexingMap, point: Sequence[int], sizes: Mapping[str, int] | None = None) -> set[tuple[int, ...]]:
    """The elements of the operand that the element of the result at `point` reads, for these values of the symbols."""
    inside, indices = accesses(m, sizes or {}, [np.array([x]) for x in point])
    return set(zip(*[i[inside].tolist() for i in indices], strict=True)) if indices else {()} if inside.any() else set()


def footprint(m: IndexingMap, sizes: Mapping[str, int] | None = None) -> Array:
    """Which elements of the operand the whole result reads, as booleans of the operand's shape."""
    return np.asarray(relation(m, sizes).any(axis=tuple(range(len(m.domain)))))


def relation(m: IndexingMap, sizes: Mapping[str, int] | None = None) -> Array:
    """Which element of the result reads which of the operand, as booleans of the result's and the operand's shape."""
    known = sizes or {}
    domain = tuple([value_of(size, known) for size in m.domain])
    shape = tuple([value_of(size, known) for size in m.shape])
    inside, indices = accesses(m, known, [np.arange(size) for size in domain])
    places = np.ogrid[tuple([slice(n) for n in inside.shape])][: len(domain)]
    pairs = [np.broadcast_to(i, inside.shape)[inside] for i in (*places, *indices)]
    found = np.zeros((*domain, *shape), np.bool_)
    found[tuple(pairs)] = True if pairs else inside.any()
    return found


def accesses(m: IndexingMap, sizes: Mapping[str, int], points: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Whether the conditions hold, and the index of each dimension, over `points` (one array for each coordinate) and
    the range variables."""
    axes = [*points, *[np.arange(value_of(size, sizes)) for size in m.ranges]]
    shape = tuple([len(axis) for axis in axes])
    names = [*[d(i).text for i in range(len(points))], *[r(j).text for j in range(len(m.ranges))]]
    values = {name: np.array(value) for name, value in sizes.items()}
    for k, (name, axis) in enumerate(zip(names, axes, strict=True)):
        values[name] = axis.reshape([-1 if i == k else 1 for i in range(len(axes))])
    inside = np.ones(shape, np.bool_)
    for c in m.conditions:
        expr = _array(c.expr, values)
        inside &= (_array(c.lo, values) <= expr) & (expr < _array(c.hi, values))
    return inside, [np.broadcast_to(_array(index, values), shape) for index in m.indices]


def _array(size: Size, values: Values) -> Array:
    total = np.array(0, np.int64)
    for monomial, coefficient in terms_of(size):
        term = np.array(coefficient, np.int64)
        for atom, exponent in monomial:
            term = term * _atom(atom, values) ** exponent
        total = total + term
    return total


def _atom(atom: Atom, values: Values) -> Array:
    if not atom.args:
        if atom.head not in values:
            raise DimError(f"no value for dimension '{atom.head}'")
        return values[atom.head]
    args = [_array(arg, values) for arg in atom.args]
    if atom.head in ("min", "max"):
        return reduce(np.minimum if atom.head == "min" else np.maximum, args)
    # Where a divisor is 0 there is no element, and so nothing that the quotient is used for.
    divisor = np.where(args[1] == 0, 1, args[1])
    return args[0] // divisor if atom.head == "floordiv" else args[0] % divisor
