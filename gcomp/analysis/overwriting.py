"""Which results of a kernel may be written over an operand that dies there."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing import rows as rows  # fills the table
from gcomp.analysis.indexing.maps import is_pointwise
from gcomp.analysis.indexing.table import operand_maps
from gcomp.dims import Size, product
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import is_tensor, shape_of
from gcomp.ir.walking import captures

IN_ONE_STEP = frozenset({"loop", "matmul", "convolution", "winograd", "window", "scatter"})
"""Kinds of kernels that write an element of each result in one step, and what that element needs is read before.

Reductions go over a row in several passes, and write results in different ones.
"""


class Overwriting:
    """Which results of an op may lie over which of its operands: its body, which must stay as it is, is looked through
    once for all pairs.

    They take the same bytes, and each element that is computed from the operand needs the operand's element at its own
    place, and no other. What is scattered into, or updated in a slice, is such an operand. `op` is a kernel, or an op
    by itself.
    """

    def __init__(self, op: Operation) -> None:
        self._results, self._kind = list(op.results), ""
        self._arguments, self._returned = list[SSAValue](op.operands), list[SSAValue](op.results)
        self._body = [op]
        if isinstance(op, LaunchOp):
            self._kind = op.kind_name
            self._arguments, self._returned = list[SSAValue](op.block.args), list[SSAValue](op.returned.operands)
            self._body = [inner for inner in op.block.ops if inner is not op.block.last_op]
        self._own: dict[Size, list[frozenset[int]]] = {}
        self._reached: dict[int, set[SSAValue] | None] = {}
        self._like: dict[tuple[SSAValue, Size], set[SSAValue]] = {}

    def may(self, operand: int, result: int) -> bool:
        """Whether a result may be written over an operand, in whatever order its elements are computed."""
        argument, returned = self._arguments[operand], self._returned
        if self._kind and self._kind not in IN_ONE_STEP and self._kind != "reduction":
            return False
        if not is_tensor(argument.type) or not is_tensor(self._results[result].type):
            return False
        count = _count(argument)
        if _count(self._results[result]) != count:
            return False
        if operand not in self._reached:
            self._reached[operand] = self._reach(argument, count)
        reached = self._reached[operand]
        if reached is None:
            return False
        if self._kind == "reduction":
            # All that needs the operand must be written in one pass: an earlier one would change what a later reads.
            passes = _passes(self._body)
            return returned[result] in reached and len({passes.get(v, 0) for v in returned if v in reached}) == 1
        if returned[result] in reached:
            return True
        # What is scattered into is copied first: its copy must lie there, and nothing else.
        if any(role_of(inner) is Role.SCATTER for inner in self._body):
            return False
        # Others that need the operand are written in the same step only where they lie element by element like it.
        alike = self._alike(returned[result], count)
        return all(v in alike for v in returned if v in reached)

    def _own_places(self, count: Size) -> list[frozenset[int]]:
        if count not in self._own:
            self._own[count] = [_at_their_own_place(op, count) for op in self._body]
        return self._own[count]

    def _reach(self, argument: SSAValue, count: Size) -> set[SSAValue] | None:
        """What is computed from an operand; None where an element of it needs another place of the operand."""
        reached = {argument}
        for op, own in zip(self._body, self._own_places(count), strict=True):
            if not reached.isdisjoint(captures(op)):
                return None
            read = [i for i, v in enumerate(op.operands) if v in reached]
            if read:
                if not own.issuperset(read):
                    return None
                reached.update(op.results)
        return reached

    def _alike(self, value: SSAValue, count: Size) -> set[SSAValue]:
        """The values whose elements lie like those of a value, which ops link element by element to it."""
        if (found := self._like.get((value, count))) is not None:
            return found
        found, links = {value}, list[set[SSAValue]]()
        for op, own in zip(self._body, self._own_places(count), strict=True):
            same = [op.operands[i] for i in own if _is_of(op.operands[i], count)]
            links.append({*same, *(r for r in op.results if same and _is_of(r, count))})
        while more := [link for link in links if not found.isdisjoint(link) and not link <= found]:
            found.update(*more)
        self._like[value, count] = found
        return found


def _is_of(value: SSAValue, count: Size) -> bool:
    return is_tensor(value.type) and _count(value) == count


def _passes(body: list[Operation]) -> dict[SSAValue, int]:
    """How many reductions, one after the other, each value waits for."""
    passes: dict[SSAValue, int] = {}
    for op in body:
        level = max((passes.get(v, 0) for v in op.operands), default=0) + (role_of(op) is Role.REDUCTION)
        passes.update(dict.fromkeys(op.results, level))
    return passes


def _count(value: SSAValue) -> Size:
    return product(shape_of(value))


def _at_their_own_place(op: Operation, count: Size) -> frozenset[int]:
    """The operands that each element of an op's results needs at its own place, and at no other."""
    every = range(len(op.operands))
    match role_of(op):
        case Role.VIEW:
            return frozenset(every)
        case Role.SCATTER:
            return frozenset({0} if len(op.results) == 1 else ())
        case Role.ELEMENTWISE if _count(op.results[0]) == count:
            columns = zip(*operand_maps(op), strict=True)
            return frozenset(
                [i for i, maps in enumerate(columns) if all(m is not None and is_pointwise(m) for m in maps)]
            )
        case _:
            return frozenset()
