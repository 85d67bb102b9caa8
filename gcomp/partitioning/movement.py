"""Data movement: along dimensions in which elements move, a part of the result lies in a few parts of the operand."""

from __future__ import annotations

from math import gcd

from xdsl.ir import Operation

from gcomp.analysis.indexing.movement import equal_runs
from gcomp.dims import Size, exact_div
from gcomp.ir import stablehlo as hlo
from gcomp.partitioning.derive import Draft
from gcomp.partitioning.rule import Kind
from gcomp.partitioning.table import rules


@rules(hlo.ConcatenateOp, hlo.PadOp, hlo.ReverseOp, hlo.SliceOp)
def moved(op: Operation, draft: Draft) -> None:
    """Where elements move is known: neighbours get them."""
    draft.positions(Kind.PERMUTATION)


@rules(hlo.BitcastConvertOp)
def bitcast_convert(op: Operation, draft: Draft) -> None:
    """As the maps show; the parts of an element stay together."""


@rules(hlo.ReshapeOp)
def reshape(op: hlo.ReshapeOp, draft: Draft) -> None:
    """Groups of dimensions with equal products share factors, from the major dimension down."""
    old, new = draft.shapes
    if 0 in old:
        return
    for results, operands in equal_runs(new, old):
        _share(draft, operands, results)


def _share(draft: Draft, operands: list[int], results: list[int]) -> None:
    """Tie the major factors that a run of the operand's dimensions has in common with one of the result's."""
    a, b = iter(operands), iter(results)
    i, k = next(a, None), next(b, None)
    if i is None or k is None:
        return
    left, right = draft.size((0, i)), draft.size((1, k))
    while i is not None and k is not None:
        common = _common(left, right)
        if common == 1:
            break
        draft.tie([(0, i), draft.result(k)], size=common)
        left, right = _quotient(left, common), _quotient(right, common)
        if left == 1 and (i := next(a, None)) is not None:
            left = draft.size((0, i))
        if right == 1 and (k := next(b, None)) is not None:
            right = draft.size((1, k))
    # What is left of the two dimensions is divided among others in ways that have nothing in common.
    for slot, rest in (((0, i), left), ((1, k), right)):
        if slot[1] is not None and not draft.free((slot[0], slot[1])) and rest != 1:
            draft.tie([(slot[0], slot[1])], Kind.NEED_REPLICATION, size=rest)


def _common(a: Size, b: Size) -> Size:
    """A factor of two sizes, the greatest if they are numbers."""
    if isinstance(a, int) and isinstance(b, int):
        return gcd(a, b)
    return a if a == b or exact_div(b, a) is not None else b if exact_div(a, b) is not None else 1


def _quotient(a: Size, b: Size) -> Size:
    found = exact_div(a, b)
    assert found is not None, f"{b} is a factor of {a}"
    return found
