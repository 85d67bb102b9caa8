"""Maps through several ops: from a value to the values that it is computed from, along every path between them.

reads(softmax, [x])[x]             # (d0, d1) -> (d0, d1), and (d0, d1)[r0] -> (d0, r0): x itself, and its row
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

from xdsl.ir import Block, Operation, SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, compose, identity, join, whole
from gcomp.analysis.indexing.simplify import FROM_ZERO, simplify
from gcomp.analysis.indexing.table import Maps, extent, operand_maps
from gcomp.dims import Ranges
from gcomp.ir.walking import walk

MOST_PATHS = 8
"""Where there are more different maps between two tensors, they are joined into one that holds them all."""

Paths = dict[SSAValue, dict[IndexingMap, None]]


def reads(
    value: SSAValue, inputs: Sequence[SSAValue], ranges: Ranges = FROM_ZERO
) -> Mapping[SSAValue, tuple[IndexingMap, ...]]:
    """For each of `inputs` that a value is computed from, the different maps of the paths to it.

    A path ends at the first input that it meets. An input that is not there is not read.
    """
    found: Paths = {value: {identity(extent(value)): None}}
    for op in _back(value, {*inputs}):
        rows = operand_maps(op)
        for result, row in zip(op.results, rows, strict=True):
            if result in found:
                _extend(found, result, zip(op.operands, row, strict=True), ranges)
                captured = [(v, whole(extent(result), extent(v), exact=False)) for v in outer_values(op)]
                _extend(found, result, captured, ranges)
    return {x: tuple(found[x]) for x in inputs if x in found}


def _extend(
    found: Paths, result: SSAValue, read: Iterable[tuple[SSAValue, IndexingMap | None]], ranges: Ranges
) -> None:
    """Put what a result's own paths make of what it reads to the paths of that."""
    for operand, inner in read:
        if inner is None:
            continue
        maps = found.setdefault(operand, {})
        maps.update((simplify(compose(outer, inner), ranges), None) for outer in found[result])
        if len(maps) > MOST_PATHS:
            found[operand] = {join_maps(maps): None}


def join_maps(maps: Iterable[IndexingMap]) -> IndexingMap:
    """One map that holds the elements of several between the same tensors."""
    return reduce(join, maps)


def _back(value: SSAValue, ends: set[SSAValue]) -> list[Operation]:
    """The ops that compute a value from `ends`, each after all that use it."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    stack: list[SSAValue | Operation] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Operation):
            order.append(item)
        elif item not in ends and not isinstance(op := item.owner, Block) and op not in seen:
            seen.add(op)
            stack.append(op)
            stack += [*op.operands, *outer_values(op)]
    return order[::-1]


def outer_values(op: Operation) -> Iterator[SSAValue]:
    """The values around an op that its regions use."""
    if not op.regions:
        return
    inside = {value for inner in walk(op) if inner is not op for value in inner.results}
    inside |= {arg for inner in walk(op) for region in inner.regions for block in region.blocks for arg in block.args}
    used = [value for inner in walk(op) if inner is not op for value in inner.operands]
    yield from dict.fromkeys(value for value in used if value not in inside)


def through(block: Block, ranges: Ranges = FROM_ZERO) -> list[Maps]:
    """For each value that a block returns, what it reads of each of the block's arguments."""
    rows: list[Maps] = []
    for value in block.last_op.operands if block.last_op is not None else ():
        found = reads(value, block.args, ranges)
        rows.append([join_maps(found[arg]) if arg in found else None for arg in block.args])
    return rows
