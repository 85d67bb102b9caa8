"""The table of padding: for each op class, a row that says what the op does with padding, and how it is kept right.

`ROWS` is the whole table; `gcomp.padding.rows` fills it, a file for each family of ops. A row is of one of these kinds:

    independent    no element of a result reads one that is not at its own place along a padded dimension
    neutral        it mixes elements: padding is given a value, or an order, that changes nothing
    placed         what it reads or writes depends on the size: places are counted from the true one
    sized          it gives a size as a number: the true one
    expanded       it is other ops, and these have rows
    control        branches and loops: what they carry is found as a fixed point
    refused        nothing is known that would be right, for the reason given

A row gets the sweep, the op, and its operands as `Padded` values: what they are in the padded program, where their
real elements lie, and the number that they are full of, if that is known. It builds the op again and says the
same of its results. An op that has no padded size anywhere is copied, whatever its row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from gcomp.padding.sweep import Padded, Row, Rule, Sweep, refuse

KINDS = ("independent", "neutral", "placed", "sized", "expanded", "control", "refused")
ROWS: dict[type[Operation], Row] = {}
"""Op class -> its row."""


def pads(kind: str, *ops: type[Operation]) -> Callable[[Rule], Rule]:
    """Register a function as the row of op classes."""

    def register(rule: Rule) -> Rule:
        for op in ops:
            ROWS[op] = Row(kind, rule)
        return rule

    return register


def refuses(reason: str, *ops: type[Operation], fix: str | None = None) -> None:
    """Say why nothing is known of op classes."""

    def rule(sweep: Sweep, op: Operation, operands: Sequence[Padded]) -> Sequence[Padded]:
        refuse(sweep, op, reason, fix)

    for op in ops:
        ROWS[op] = Row("refused", rule, reason)
