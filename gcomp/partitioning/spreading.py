"""One step of propagation: what the tensors of an op say of its factors goes to the others that have them.

The rules are Shardy's (its aggressive strategy). For each factor, the axes on which the tensors agree are what may be
added. Each tensor takes what does not contradict its own axes, factor after factor: first those whose axes come from
the largest tensor, and in elementwise ops those that cut into the most pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Flag
from math import gcd, prod

from gcomp.dims import Size, exact_div
from gcomp.partitioning.axes import Cut, Lying, Part, Parts, common_parts, truncated, without_all


class Direction(Flag):
    """Where a factor's axes may go."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3


def spread(
    operands: Sequence[Lying],
    results: Sequence[Lying],
    sizes: Sequence[Size],
    directions: Sequence[Direction],
    *,
    elementwise: bool = False,
) -> list[int]:
    """Let the axes of each factor go to the tensors that have it; the tensors that were cut further.

    Tensors are counted, results after operands.
    """
    tensors = [*operands, *results]
    wanted = [_wanted(operands, results, f, direction) for f, direction in enumerate(directions)]
    if not any(wanted):
        return []
    order = _order(tensors, wanted, sizes, elementwise)
    grown: list[int] = []
    for t in (*range(len(operands), len(tensors)), *range(len(operands))):
        taken = [_taken(tensors[t], f, wanted[f], sizes[f], results if t < len(operands) and elementwise else ())
                 for f in order]  # fmt: skip
        if any(taken):
            grown.append(t)
    return sorted(grown)


def _order(tensors: Sequence[Lying], wanted: Sequence[Parts], sizes: Sequence[Size], elementwise: bool) -> list[int]:
    """The factors in the order in which they get their axes."""
    source = [(-1, -1)] * len(wanted)
    for t, tensor in enumerate(tensors):
        elements = prod(size for f in tensor.cuts if isinstance(size := sizes[f], int))
        for f, cut in tensor.cuts.items():
            if wanted[f] and begins(wanted[f], cut.parts) and elements > source[f][0]:
                source[f] = elements, t

    def rank(f: int) -> tuple[int, int, int, int]:
        return -source[f][0], -prod(p.size for p in wanted[f]) if elementwise else 0, source[f][1], f

    return sorted(range(len(wanted)), key=rank)


def _taken(tensor: Lying, f: int, wanted: Parts, size: Size, results: Sequence[Lying]) -> bool:
    """Cut a factor of a tensor further, if its own axes allow; an operand of an elementwise op not beyond a result."""
    cut = tensor.cuts.get(f)
    if cut is None:
        return False
    parts = truncated(wanted, _within(tensor, cut, size))
    if not _further(cut.parts, parts):
        return False
    parts = truncated(parts, _across(tensor, f))
    for result in results if parts else ():
        if f in result.cuts and _further(result.cuts[f].parts, parts):
            parts = result.cuts[f].parts
    if not _further(cut.parts, parts):
        return False
    cut.parts = parts
    return True


def _wanted(operands: Sequence[Lying], results: Sequence[Lying], f: int, direction: Direction) -> Parts:
    """The axes of a factor on which all tensors agree; those at the far end of the direction only agree or not."""
    if direction is Direction.NONE:
        return ()
    first, second = (results, operands) if direction is Direction.BACKWARD else (operands, results)
    parts, grow = (), True
    for tensor in first:
        if f in tensor.cuts:
            parts, grow = common_parts(parts, tensor.cuts[f].parts, grow)
    grow &= direction is Direction.BOTH
    for tensor in second:
        if f in tensor.cuts:
            parts, grow = common_parts(parts, tensor.cuts[f].parts, grow)
    return parts


def _within(tensor: Lying, cut: Cut, size: Size) -> Callable[[Part, int], Part | None]:
    """What a factor of a tensor takes: nothing that is to stay replicated, and nothing new if it is closed."""

    def allowed(part: Part, before: int) -> Part | None:
        kept = without_all(part, tensor.replicated)
        if kept is None:
            return None
        if any(own.contains(kept) for own in cut.parts):
            return kept
        if not cut.is_closed and not cut.overflow:
            if cut.is_minor:
                return kept
            rest = exact_div(size, before)
            common = gcd(rest, kept.size) if isinstance(rest, int) else 1
            if common != 1 or kept.size == 1:
                return Part(kept.name, kept.before, common)
        return cut.parts[-1] if cut.parts and cut.parts[-1].begins(kept) else None

    return allowed


def _across(tensor: Lying, factor: int) -> Callable[[Part, int], Part | None]:
    """What the other factors of a tensor leave."""

    def allowed(part: Part, before: int) -> Part | None:
        kept: Part | None = part
        for f, cut in tensor.cuts.items():
            if f != factor:
                kept = without_all(kept, (*cut.overflow, *cut.parts))
        return kept

    return allowed


def begins(old: Parts, new: Parts) -> bool:
    """Whether some parts are others, or the major ones of these."""
    if not old:
        return True
    return len(old) <= len(new) and old[:-1] == new[: len(old) - 1] and old[-1].begins(new[len(old) - 1])


def _further(old: Parts, new: Parts) -> bool:
    return old != new and begins(old, new)
