"""Indexing maps: for an element of a result, the elements of an operand that it reads.

    transpose = IndexingMap(domain=(3, 2), shape=(2, 3), indices=(d(1), d(0)))
    row_sums = IndexingMap(domain=(2,), shape=(2, 3), indices=(d(0), r(0)), ranges=(3,))

`d(i)` is the i-th coordinate of the result's element, `r(j)` a variable that takes every value below `ranges[j]`.
Indices are sizes in the algebra of `gcomp.dims` over these and the program's own symbols, so that equal formulas are
equal objects. The coordinate of a dimension of size 1 is 0 and never written as `d(i)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gcomp.dims import Atom, Dim, DimLimitError, Size, substitute, symbols_of
from gcomp.dims.algebra import atom_size


@lru_cache(1024)
def d(i: int) -> Dim:
    """The i-th coordinate of the result's element. No text of a dimension is a `$`, so no user's symbol is this one."""
    return atom_size(Atom(f"$d{i}"))


@lru_cache(1024)
def r(j: int) -> Dim:
    """The j-th range variable."""
    return atom_size(Atom(f"$r{j}"))


@dataclass(frozen=True, slots=True)
class Condition:
    """`lo <= expr < hi`."""

    expr: Size
    lo: Size
    hi: Size

    def __str__(self) -> str:
        return f"{self.lo} <= {self.expr} < {self.hi}"


NEVER = Condition(0, 1, 1)
"""What never holds."""


@dataclass(frozen=True, slots=True)
class IndexingMap:
    """What each element of a result of shape `domain` reads of an operand of shape `shape`.

    It reads the operand at `indices`, for all values of the range variables for which every condition holds; where they
    hold, the indices are within `shape`. With `exact`, it reads all these elements whatever the data; otherwise it may
    read fewer, and `data_dependent` are the dimensions of the operand in which data say where.
    """

    domain: tuple[Size, ...]
    shape: tuple[Size, ...]
    indices: tuple[Size, ...]
    ranges: tuple[Size, ...] = ()
    conditions: tuple[Condition, ...] = ()
    exact: bool = True
    data_dependent: frozenset[int] = frozenset()

    def __str__(self) -> str:
        coordinates = ", ".join(str(d(i)) for i in range(len(self.domain)))
        text = f"({coordinates})"
        if self.ranges:
            text += f"[{', '.join(f'{r(j)} < {size}' for j, size in enumerate(self.ranges))}]"
        text += f" -> ({', '.join(map(str, self.indices))})"
        if self.conditions:
            text += f" where {', '.join(map(str, self.conditions))}"
        if not self.exact:
            text += f" at most{f', data in {sorted(self.data_dependent)}' if self.data_dependent else ''}"
        return text

    @property
    def variables(self) -> frozenset[str]:
        """The names of all symbols in indices and conditions."""
        sizes = [*self.indices, *(s for c in self.conditions for s in (c.expr, c.lo, c.hi))]
        return frozenset[str]().union(*map(symbols_of, sizes))

    def extents(self) -> dict[str, Size]:
        """Name -> size, of each coordinate and each range variable."""
        named = {d(i).text: size for i, size in enumerate(self.domain)}
        return named | {r(j).text: size for j, size in enumerate(self.ranges)}

    def loosen(self, *dependent: int) -> IndexingMap:
        """The map as an upper bound: fewer elements may be read, and data choose them in the `dependent` dimensions."""
        return replace(self, exact=False, data_dependent=self.data_dependent | frozenset(dependent))

    def substitute(self, mapping: dict[str, Size], shape: Sequence[Size] | None = None) -> IndexingMap:
        """The map with symbols replaced in its sizes, indices and conditions."""

        def new(sizes: Iterable[Size]) -> tuple[Size, ...]:
            return tuple([substitute(s, mapping) for s in sizes])

        return replace(
            self,
            domain=new(self.domain),
            shape=new(self.shape) if shape is None else tuple(shape),
            indices=new(self.indices),
            ranges=new(self.ranges),
            conditions=tuple([Condition(*new((c.expr, c.lo, c.hi))) for c in self.conditions]),
        )


# ---- making maps --------------------------------------------------------------------------------------------------


@lru_cache(4096)
def coordinates(shape: tuple[Size, ...]) -> tuple[Size, ...]:
    """The coordinates of an element of a tensor of this shape."""
    return tuple([0 if size == 1 else d(i) for i, size in enumerate(shape)])


def linear(shape: Sequence[Size], indices: Sequence[Size]) -> Size:
    """The place of an element in row-major order."""
    place: Size = 0
    for size, index in zip(shape, indices, strict=True):
        place = place * size + index
    return place


@lru_cache(4096)
def identity(domain: tuple[Size, ...], shape: tuple[Size, ...] | None = None) -> IndexingMap:
    """Each element reads the one at its own place. `shape` is the operand's, where it is written in another way."""
    return IndexingMap(domain, domain if shape is None else shape, coordinates(domain))


@lru_cache(4096)
def scalar(domain: tuple[Size, ...]) -> IndexingMap:
    """Each element reads the only element of an operand of rank 0."""
    return IndexingMap(domain, (), ())


@lru_cache(4096)
def whole(domain: tuple[Size, ...], shape: tuple[Size, ...], exact: bool = True) -> IndexingMap:
    """Each element reads all elements; or, if not `exact`, nothing is known of what it reads."""
    ranging = Ranging()
    indices = tuple([ranging(size) for size in shape])
    dependent = frozenset[int]() if exact else frozenset(range(len(shape)))
    return IndexingMap(domain, shape, indices, tuple(ranging.sizes), (), exact, dependent)


def nothing(domain: tuple[Size, ...], shape: tuple[Size, ...], ranges: tuple[Size, ...] = ()) -> IndexingMap:
    """No element reads any: what a map is whose conditions never hold."""
    return IndexingMap(domain, shape, (0,) * len(shape), ranges, (NEVER,))


class Ranging:
    """Hands out range variables, and keeps their sizes."""

    def __init__(self, sizes: Iterable[Size] = ()) -> None:
        self.sizes = list(sizes)

    def __call__(self, size: Size) -> Size:
        """A variable below `size`."""
        if size == 1:
            return 0
        self.sizes.append(size)
        return r(len(self.sizes) - 1)


# ---- composition --------------------------------------------------------------------------------------------------


def compose(outer: IndexingMap, inner: IndexingMap) -> IndexingMap:
    """What `outer`'s results read of `inner`'s operand, where `outer`'s operand is `inner`'s result.

    Where that has no formula within the limits of the algebra, nothing is known of it.
    """
    if len(outer.shape) != len(inner.domain):
        raise ValueError(f"{outer} reads an operand of rank {len(outer.shape)}, {inner} has rank {len(inner.domain)}")
    exact = outer.exact and inner.exact
    if is_pointwise(inner):
        dependent = outer.data_dependent | inner.data_dependent
        return replace(outer, shape=inner.shape, exact=exact, data_dependent=dependent)
    if is_pointwise(outer) and not outer.data_dependent:
        return replace(inner, domain=outer.domain, exact=exact)
    try:
        return _substitute(outer, inner)
    except DimLimitError:
        return whole(outer.domain, inner.shape, exact=False)


def _substitute(outer: IndexingMap, inner: IndexingMap) -> IndexingMap:
    """`inner` at the indices of `outer`; its range variables come after those of `outer`."""
    shift = len(outer.ranges)
    mapping: dict[str, Size] = {d(i).text: index for i, index in enumerate(outer.indices)}
    if shift:
        mapping |= {r(j).text: r(j + shift) for j in range(len(inner.ranges))}
    moved = {d(i).text for i in outer.data_dependent}
    dependent = {k for k, index in enumerate(inner.indices) if not moved.isdisjoint(symbols_of(index))}
    conditions = [_condition(c, mapping) for c in inner.conditions]
    return IndexingMap(
        outer.domain,
        inner.shape,
        tuple([substitute(index, mapping) for index in inner.indices]),
        (*outer.ranges, *inner.ranges),
        (*outer.conditions, *conditions),
        outer.exact and inner.exact,
        inner.data_dependent | dependent,
    )


def _condition(condition: Condition, mapping: dict[str, Size]) -> Condition:
    return Condition(*[substitute(size, mapping) for size in (condition.expr, condition.lo, condition.hi)])


def join(a: IndexingMap, b: IndexingMap) -> IndexingMap:
    """A map that holds the elements of two maps between the same tensors: dimensions in which they differ are whole."""
    if a == b:
        return a
    ranging = Ranging()
    indices: list[Size] = []
    covered = [not a.conditions, not b.conditions]
    for k, (x, y) in enumerate(zip(a.indices, b.indices, strict=True)):
        full = [_is_full(m, k) for m in (a, b)]
        if x == y and not _has_ranges(x):
            indices.append(x)
            continue
        indices.append(ranging(a.shape[k]))
        covered = [c and f for c, f in zip(covered, full, strict=True)]
    conditions = tuple(c for c in a.conditions if c in b.conditions and not _has_ranges(c.expr))
    exact = any(c and m.exact for c, m in zip(covered, (a, b), strict=True))
    dependent = a.data_dependent | b.data_dependent
    return IndexingMap(a.domain, a.shape, tuple(indices), tuple(ranging.sizes), conditions, exact, dependent)


def _has_ranges(size: Size) -> bool:
    return any(name.startswith("$r") for name in symbols_of(size))


def _is_full(m: IndexingMap, k: int) -> bool:
    """Whether index k is a range variable of its own over the whole dimension."""
    if m.shape[k] == 1:
        return True
    index = m.indices[k]
    return any(
        index == r(j) and size == m.shape[k] and sum(r(j).text in symbols_of(i) for i in m.indices) == 1
        for j, size in enumerate(m.ranges)
    )


# ---- predicates ---------------------------------------------------------------------------------------------------


def is_pointwise(m: IndexingMap) -> bool:
    """Whether each element reads the one at its own place, and no other."""
    return not m.ranges and not m.conditions and len(m.shape) == len(m.domain) and m.indices == coordinates(m.domain)


def is_permutation(m: IndexingMap) -> bool:
    """Whether the result is the operand with dimensions in another order; those of size 1 do not count."""
    taken = _plain_coordinates(m)
    return taken is not None and {d(i) for i, size in enumerate(m.domain) if size != 1} == {*taken}


def is_broadcast(m: IndexingMap) -> bool:
    """Whether the result repeats the whole operand along dimensions that it lacks, or has with size 1."""
    taken = _plain_coordinates(m)
    return taken is not None and len(taken) < sum(size != 1 for size in m.domain)


def _plain_coordinates(m: IndexingMap) -> list[Size] | None:
    """The coordinates that are indices, if each dimension of the operand is one of the result's or has size 1."""
    if m.ranges or m.conditions:
        return None
    places: dict[Size, Size] = {d(i): size for i, size in enumerate(m.domain)}
    taken = [index for index, size in zip(m.indices, m.shape, strict=True) if size != 1]
    sizes = [size for size in m.shape if size != 1]
    if len({*taken}) != len(taken) or any(places.get(x) != size for x, size in zip(taken, sizes, strict=True)):
        return None
    return taken
