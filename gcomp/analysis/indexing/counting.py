"""How many elements of an operand a result reads, whether any is read twice, and how far apart they lie in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cmp_to_key, lru_cache
from typing import NamedTuple

from gcomp.analysis.indexing.maps import NEVER, Condition, IndexingMap, linear
from gcomp.analysis.indexing.simplify import FROM_ZERO, Bounds, Known, Said, linear_slope, simplify
from gcomp.dims import Ranges, Size, ceildiv, mod, product, substitute, symbols_of
from gcomp.dims.algebra import as_atom, terms_of


class Count(NamedTuple):
    """How many elements; `exact`, or at most so many."""

    elements: Size
    exact: bool


def touched_elements(m: IndexingMap, sizes: Mapping[str, int] | None = None, ranges: Ranges = FROM_ZERO) -> Count:
    """How many distinct elements of the operand all of the result reads, as a formula, or for values of the symbols.

    Exact for slices, broadcasts, transposes, pads, concatenations, reshapes, contractions and most windows. A formula
    is for a result that is not empty.
    """
    values = dict[str, Size](sizes or {})
    if any(substitute(size, values) == 0 for size in (*m.domain, *m.ranges)):
        return Count(0, exact=True)
    return _count_touched(m.substitute(values) if values else m, Said.by(ranges))


@lru_cache(1 << 14)
def _count_touched(m: IndexingMap, said: Said) -> Count:
    ranges = said.ranges
    m = simplify(m, ranges)
    if NEVER in m.conditions:
        return Count(0, exact=True)
    bounds: Bounds = {name: (0, size - 1) for name, size in m.extents().items()}
    loose: list[Condition] = []
    for c in m.conditions:
        atom = as_atom(c.expr)
        if atom is None or atom.text not in bounds:
            loose.append(c)
            continue
        low, high = bounds[atom.text]
        bounds[atom.text] = ranges.greater(low, c.lo), ranges.lesser(high, c.hi - 1)
    count = _count(m, loose, Known(bounds, ranges))
    return Count(count.elements, count.exact and m.exact)


def _count(m: IndexingMap, conditions: Sequence[Condition], known: Known) -> Count:
    taken: set[str] = set()
    counts: list[Count] = []
    used = 0
    for index, size in zip(m.indices, m.shape, strict=True):
        names = symbols_of(index) & known.bounds.keys()
        own = [c for c in conditions if symbols_of(c.expr) & known.bounds.keys() <= names and names]
        if not taken.isdisjoint(names):
            return _jointly(m, conditions, known)
        taken |= names
        used += len(own)
        found = _values(index, own, size, known)
        if found is None:
            return _jointly(m, conditions, known)
        counts.append(found)
    # Another condition says when anything is read at all.
    others = m.variables & known.bounds.keys() - taken
    always = used == len(conditions) and all(known.holds(_extent(name, known) - 1) for name in others)
    exact = always and all(c.exact for c in counts)
    return Count(product([c.elements for c in counts]), exact)


def _jointly(m: IndexingMap, conditions: Sequence[Condition], known: Known) -> Count:
    """One element for each value of the variables, if none is read twice; at most the whole operand."""
    names = m.variables & known.bounds.keys()
    once = not conditions and _determined_variables(m.indices, known) == names
    most = product([_extent(name, known) for name in sorted(names)])
    return Count(most, exact=True) if once else Count(known.ranges.lesser(most, product(m.shape)), exact=False)


def _extent(name: str, known: Known) -> Size:
    low, high = known.bounds[name]
    return known.ranges.greater(high - low + 1, 0)


def _values(index: Size, conditions: list[Condition], size: Size, known: Known) -> Count | None:
    """How many values an index takes where the conditions hold; None where that is not known."""
    index, step, conditions = _split_stride(index, conditions)
    slopes = _slopes(index, known)
    if slopes is None:
        return None
    if len(slopes) < 2 and step == 1 and not conditions:
        return Count(product([_extent(name, known) for name in slopes]), exact=True)
    if not _is_dense(slopes, known):
        once = step == 1 and not conditions and _separates(slopes, known)
        most = product([_extent(name, known) for name in slopes])
        return Count(most, exact=True) if once else Count(known.ranges.lesser(most, size), exact=False)
    low, high = _end(index, slopes, known, least=True), _end(index, slopes, known, least=False) + 1
    for c in conditions:
        shift = c.expr - index
        if symbols_of(shift) & known.bounds.keys():
            return Count(size, exact=False)
        low, high = known.ranges.greater(low, c.lo - shift), known.ranges.lesser(high, c.hi - shift)
    return Count(known.ranges.greater(ceildiv(high, step) - ceildiv(low, step), 0), exact=True)


def _split_stride(index: Size, conditions: list[Condition]) -> tuple[Size, int, list[Condition]]:
    """An index `position // step` as the position and the step, of which only multiples are read."""
    constant = dict(terms_of(index)).get((), 0)
    atom = as_atom(index - constant)
    if atom is not None and atom.head == "floordiv" and isinstance(step := atom.args[1], int):
        whole = Condition(mod(atom.args[0], step), 0, 1)
        if whole in conditions:
            return atom.args[0], step, [c for c in conditions if c != whole]
    return index, 1, conditions


# ---- sums of multiples of variables ---------------------------------------------------------------------------------


def _slopes(index: Size, known: Known) -> dict[str, Size] | None:
    """Variable -> what multiplies it, if the index is a sum of such products, from the smallest magnitude on."""
    names = symbols_of(index) & known.bounds.keys()
    found: dict[str, Size] = {}
    for name in names:
        by = linear_slope(index, name)
        if by is None or symbols_of(by) & known.bounds.keys():
            return None
        found[name] = by

    def order(a: str, b: str) -> int:
        return -1 if known.holds(_size(found[b], known) - _size(found[a], known)) else 1

    return {name: found[name] for name in sorted(sorted(names), key=cmp_to_key(order))}


def _size(slope: Size, known: Known) -> Size:
    return -slope if known.holds(-slope) else slope


def _span(name: str, slope: Size, known: Known) -> Size:
    """How far a variable moves an index."""
    low, high = known.bounds[name]
    return _size(slope, known) * (high - low)


def _end(index: Size, slopes: Mapping[str, Size], known: Known, *, least: bool) -> Size:
    ends = {name: known.bounds[name][known.holds(by) != least] for name, by in slopes.items()}
    return substitute(index, ends)


def _is_dense(slopes: Mapping[str, Size], known: Known) -> bool:
    """Whether an index takes every value between its ends: no variable jumps over more than the smaller ones fill."""
    filled: Size = 0
    for name, by in slopes.items():
        if not known.holds(filled + 1 - _size(by, known)) or not (known.holds(by) or known.holds(-by)):
            return False
        filled = filled + _span(name, by, known)
    return True


def _separates(slopes: Mapping[str, Size], known: Known) -> bool:
    """Whether the variables can be told from the index: each moves it further than all smaller ones together."""
    filled: Size = 0
    for name, by in slopes.items():
        if not known.holds(_size(by, known) - filled - 1):
            return False
        filled = filled + _span(name, by, known)
    return True


# ---- reading once ---------------------------------------------------------------------------------------------------


def is_injective(m: IndexingMap, ranges: Ranges = FROM_ZERO) -> bool:
    """Whether no element of the operand is read twice, by elements of the result or for values of range variables."""
    m = simplify(m, ranges)
    bounds: Bounds = {name: (0, size - 1) for name, size in m.extents().items() if size != 1}
    return _determined_variables(m.indices, Known(bounds, ranges)) == bounds.keys()


def _determined_variables(indices: Sequence[Size], known: Known) -> frozenset[str]:
    """The variables that can be told from the indices."""
    pending = _whole(list(indices))
    told: set[str] = set()
    while True:
        for index in pending:
            rest = substitute(index, dict.fromkeys(told, 0)) if _slopes(index, known) is not None else index
            slopes = _slopes(rest, known)
            if slopes and _separates(slopes, known):
                told |= slopes.keys()
                pending.remove(index)
                break
        else:
            return frozenset(told)


def _whole(indices: list[Size]) -> list[Size]:
    """Indices with each pair `x // k` and `x % k` as x."""
    for index in indices:
        atom = as_atom(index)
        if atom is None or atom.head != "mod":
            continue
        x, k = atom.args
        if (quotient := x // k) in indices:
            return _whole([x, *[i for i in indices if i not in (index, quotient)]])
    return indices


# ---- memory ---------------------------------------------------------------------------------------------------------


class Strides(NamedTuple):
    """Where elements lie in a row-major operand: `offset`, and a distance for each coordinate and range variable."""

    offset: Size
    domain: tuple[Size, ...]
    ranges: tuple[Size, ...]


def strides(m: IndexingMap, ranges: Ranges = FROM_ZERO) -> Strides | None:
    """The position in memory as a sum of multiples of coordinates and range variables; None if it is not one."""
    flat = _position(m, ranges)
    distances: list[Size] = []
    for name in m.extents():
        if (by := _distance(m, flat, name)) is None:
            return None
        distances.append(by)
    offset = substitute(flat, dict.fromkeys(m.extents(), 0))
    return Strides(offset, tuple(distances[: len(m.domain)]), tuple(distances[len(m.domain) :]))


def stride_along(m: IndexingMap, dimension: int, ranges: Ranges = FROM_ZERO) -> Size | None:
    """How far apart neighbours along one dimension of the result lie in a row-major operand, whatever the other
    coordinates are (heads that share one are read by quotients of theirs); None where that differs."""
    return _distance(m, _position(m, ranges), list(m.extents())[dimension])


def _position(m: IndexingMap, ranges: Ranges) -> Size:
    """Where the element that is read lies in a row-major operand."""
    known = Known({name: (0, size - 1) for name, size in m.extents().items()}, ranges)
    return known.simplify(linear(m.shape, m.indices))


def _distance(m: IndexingMap, position: Size, name: str) -> Size | None:
    """What one step of a coordinate or range variable adds to a position; None where that differs."""
    by = linear_slope(position, name)
    return None if by is None or symbols_of(by) & m.extents().keys() else by
