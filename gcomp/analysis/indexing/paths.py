"""Maps through several ops: from a value to the values that it is computed from, along every path between them.

    reads(softmax, [x])[x]             # (d0, d1) -> (d0, d1), and (d0, d1)[r0] -> (d0, r0): x itself, and its row
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, compose, identity, join, whole
from gcomp.analysis.indexing.simplify import FROM_ZERO, simplify
from gcomp.analysis.indexing.table import operand_maps
from gcomp.dims import Ranges
from gcomp.ir.types import is_tensor, shape_of

MOST_OPS = 64
"""Of longer computations nothing is said."""
MOST_PATHS = 8
"""More maps than these between two tensors are joined."""


def reads(
    value: SSAValue, inputs: Sequence[SSAValue], ranges: Ranges = FROM_ZERO
) -> Mapping[SSAValue, tuple[IndexingMap, ...]]:
    """For each of `inputs` that a value depends on, the distinct maps of the paths to it; paths end at inputs.

    The value and what it is computed from stand in one block. Values from outside of it end a path too.
    """
    wanted = {*inputs}
    known: dict[SSAValue, dict[IndexingMap, None]] = {value: {identity(shape_of(value)): None}}
    found: dict[SSAValue, tuple[IndexingMap, ...]] = {}
    for op in (None, *_back(value, wanted)):
        for i, row in enumerate(() if op is None else operand_maps(op)):
            assert op is not None
            for outer in known.get(op.results[i], ()):
                for operand, inner in zip(op.operands, row, strict=True):
                    if inner is not None:
                        into = known.setdefault(operand, {})
                        into[simplify(compose(outer, inner), ranges)] = None
                        _join_many(into)
    for x in wanted & known.keys():
        found[x] = tuple(known[x])
    return found


def _join_many(maps: dict[IndexingMap, None]) -> None:
    if len(maps) > MOST_PATHS:
        joined = reduce(join, maps)
        maps.clear()
        maps[joined] = None


def _back(value: SSAValue, ends: set[SSAValue]) -> list[Operation]:
    """The ops that compute a value from `ends`, users before what they use."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    stack = [(value, False)]
    while stack:
        x, done = stack.pop()
        op = x.owner
        if isinstance(op, Block) or x in ends:
            continue
        if done:
            order.append(op)
        elif op not in seen:
            seen.add(op)
            stack.append((x, True))
            stack.extend((operand, False) for operand in op.operands)
    return order[::-1]


def joined(maps: Iterable[IndexingMap]) -> IndexingMap:
    """One map that holds the elements of several between the same tensors."""
    return reduce(join, maps)


def through(block: Block, ranges: Ranges = FROM_ZERO) -> list[list[IndexingMap | None]] | None:
    """For each value that a block returns, what it reads of each of its arguments; None where that is too long to say."""
    last = block.last_op
    if last is None or sum(1 for _ in block.ops) > MOST_OPS:
        return None
    rows: list[list[IndexingMap | None]] = []
    for value in last.operands:
        if not is_tensor(value.type):
            return None
        found = reads(value, block.args, ranges)
        rows.append([joined(found[arg]) if arg in found else None for arg in block.args])
    return rows


__all__ = ["joined", "reads", "through", "whole"]
