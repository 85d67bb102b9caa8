"""What running a block needs to know beforehand: each op's row, what its regions capture, and what dies after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from gcomp.errors import UnsupportedError
from gcomp.ir.locations import where
from gcomp.ir.walking import captures
from gcomp.reference.bodies import IDENTITIES, TERMINATORS
from gcomp.reference.table import Meaning, Scope, Value


def _first_operand(op: Operation, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    return args[:1]


_IDENTITY = Meaning(_first_operand)


class Step(NamedTuple):
    """One op of a block; the terminator has `returns`."""

    op: Operation
    meaning: Meaning
    returns: bool
    operands: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]
    captures: tuple[SSAValue, ...]
    """The values around the op that its regions use."""
    dead: tuple[SSAValue, ...]
    """The values of the block that no later op uses."""


Table = Mapping[type[Operation], Meaning]


def make_step(op: Operation, table: Table, live: AbstractSet[SSAValue] = frozenset(), *, batched: bool = False) -> Step:
    """The step of an op after which the values in `live` are still needed."""
    operands, results, captured = tuple(op.operands), tuple(op.results), captures(op)
    dead = tuple([v for v in dict.fromkeys((*operands, *captured, *results)) if v not in live])
    return Step(op, _meaning(op, table, batched), type(op) in TERMINATORS, operands, results, captured, dead)


def make_plan(block: Block, table: Table, *, batched: bool) -> list[Step]:
    """The steps of a block; `batched` steps run on arrays that stand for rank 0 tensors."""
    steps: list[Step] = []
    live: set[SSAValue] = set()
    for op in reversed(list(block.ops)):
        step = make_step(op, table, live, batched=batched)
        live.update(step.operands, step.captures)
        steps.append(step)
    return steps[::-1]


def _meaning(op: Operation, table: Table, batched: bool) -> Meaning:
    kind = type(op)
    if kind in TERMINATORS:
        return _IDENTITY
    if batched and kind in IDENTITIES:
        return _IDENTITY
    found = table.get(kind)
    if found is None:
        raise UnsupportedError(
            f"{op.name} has no reference meaning", where=where(op), why="it is not an op of the graph level"
        )
    return found
