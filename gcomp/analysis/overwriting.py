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


def overwrites(op: Operation, operand: int, result: int) -> bool:
    """Whether a result may be written over an operand, in whatever order its elements are computed.

    They take the same bytes, and each element that is computed from the operand needs the operand's element at its own
    place, and no other. What is scattered into, or updated in a slice, is such an operand. `op` is a kernel, or an op
    by itself.
    """
    argument: SSAValue = op.operands[operand]
    returned, body = list(op.results), [op]
    if isinstance(op, LaunchOp):
        if op.kind_name not in IN_ONE_STEP and op.kind_name != "reduction":
            return False
        argument, returned = op.block.args[operand], list(op.returned.operands)
        body = [inner for inner in op.block.ops if inner is not op.block.last_op]
    if not is_tensor(argument.type) or not is_tensor(op.results[result].type):
        return False
    count = _count(argument)
    if _count(op.results[result]) != count:
        return False
    reached: set[SSAValue] = {argument}
    for inner in body:
        if not reached.isdisjoint(captures(inner)):
            return False
        read = [i for i, v in enumerate(inner.operands) if v in reached]
        if read:
            if not _at_its_own_place(inner, read, count):
                return False
            reached.update(inner.results)
    if isinstance(op, LaunchOp) and op.kind_name == "reduction":
        # All that needs the operand must be written in one pass: an earlier one would change what a later one reads.
        passes = _passes(body)
        return returned[result] in reached and len({passes.get(v, 0) for v in returned if v in reached}) == 1
    if returned[result] in reached:
        return True
    # What is scattered into is copied first: its copy must lie there, and nothing else.
    if any(role_of(inner) is Role.SCATTER for inner in body):
        return False
    # Others that need the operand are written in the same step only where they lie element by element like the result.
    alike = _alike(body, returned[result], count)
    return all(v in alike for v in returned if v in reached)


def _alike(body: list[Operation], value: SSAValue, count: Size) -> set[SSAValue]:
    """The values whose elements lie like those of a value, which ops link element by element to it."""
    found, links = {value}, list[set[SSAValue]]()
    for op in body:
        own = [i for i, v in enumerate(op.operands) if _is_of(v, count) and _at_its_own_place(op, [i], count)]
        links.append({*(op.operands[i] for i in own), *(r for r in op.results if own and _is_of(r, count))})
    while more := [link for link in links if not found.isdisjoint(link) and not link <= found]:
        found.update(*more)
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


def _at_its_own_place(op: Operation, read: list[int], count: Size) -> bool:
    """Whether each element of an op's results needs some operands at its own place, and at no other."""
    match role_of(op):
        case Role.VIEW:
            return True
        case Role.SCATTER:
            return read == [0] and len(op.results) == 1
        case Role.ELEMENTWISE:
            maps = [row[i] for row in operand_maps(op) for i in read]
            return _count(op.results[0]) == count and all(m is not None and is_pointwise(m) for m in maps)
        case _:
            return False
