"""Going through ops: `Operation.walk` without a generator for each op, which took a tenth of a short compilation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsolatedFromAbove


def walk(root: Operation) -> Iterator[Operation]:
    """An op and all ops inside it, each before those of its regions. The op that was yielded last may be erased."""
    yield root
    pending = _first_ops(root)
    while pending:
        op: Operation | None = pending.pop()
        while op is not None:
            following = op.next_op
            yield op
            if op.regions:
                if following is not None:
                    pending.append(following)
                pending += _first_ops(op)
                break
            op = following


def _first_ops(op: Operation) -> list[Operation]:
    blocks = [block for region in op.regions for block in region.blocks]
    return [block.first_op for block in reversed(blocks) if block.first_op is not None]


def inputs_of(op: Operation) -> tuple[SSAValue, ...]:
    """What an op reads: its operands, and what its regions use from around it."""
    return (*op.operands, *captures(op)) if op.regions else tuple(op.operands)


@cache
def _is_isolated(kind: type[Operation]) -> bool:
    return kind.has_trait(IsolatedFromAbove, value_if_unregistered=False)


def captures(op: Operation) -> tuple[SSAValue, ...]:
    """The values that are used inside an op's regions and defined outside of the op."""
    if not op.regions or _is_isolated(type(op)):
        return ()
    inside: set[SSAValue] = set()
    used: dict[SSAValue, None] = {}
    for inner in walk(op):
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.args)
        if inner is not op:
            inside.update(inner.results)
            used.update(dict.fromkeys(inner.operands))
    return tuple(value for value in used if value not in inside)
