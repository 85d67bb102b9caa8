"""The table of sharding rules: for each op class, a row that says which of its dimensions may be cut together.

`RULES` is the whole table; `gcomp.partitioning.rows` fills it, a file for each family of ops. What an op's indexing
map shows is derived from it (`derive`); a row adds what no map says: that parts of a sum may be added, and along which
dimensions results lie as operands do though elements have to be sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xdsl.ir import Operation

from gcomp.ir.types import is_tensor
from gcomp.partitioning.derive import Draft, derive
from gcomp.partitioning.rule import ShardingRule

Row = Callable[[Any, Draft], object]
R = TypeVar("R", bound=Row)

RULES: dict[type[Operation], Row] = {}
"""Op class -> what is added to the draft of its rule."""
WITHOUT: dict[type[Operation], str] = {}
"""Op class -> why it has no rule: its operands are gathered before, and its results are whole on each device."""


def rules(*ops: type[Operation]) -> Callable[[R], R]:
    """Register a function as the row of op classes."""

    def register(row: R) -> R:
        for op in ops:
            RULES[op] = row
        return row

    return register


def without(reason: str, *ops: type[Operation]) -> None:
    """Say why op classes have no rule."""
    for op in ops:
        WITHOUT[op] = reason


def rule_of(op: Operation) -> ShardingRule | None:
    """The rule of an op; None where its class has none, or something that it computes is no tensor.

    Dimensions of ops on tensors without elements have nothing in common: of what is never read, maps say nothing.
    """
    row = RULES.get(type(op))
    if row is None or not all(is_tensor(v.type) for v in (*op.operands, *op.results)):
        return None
    draft = Draft(op)
    if not draft.is_empty:
        row(op, draft)
        derive(draft)
    return draft.finish()
