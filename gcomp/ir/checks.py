"""What is checked while a program runs: the table behind the numbers that the pass `insert-checks` computes.

A checked program returns two more numbers, its last outputs: that of the first check that failed (-1: none did), and in
which iteration of the innermost loop around it (-1: in none). The table stands in the module's attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FileLineColLoc, NameLoc, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation

from gcomp.ir.locations import describe, parts
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program

KINDS = ("nan", "inf", "index")
"""What can be checked: NaN and infinities where they come up, and indices out of range."""

MARKED = "marked-index"
"""Another kind, which frontends ask for: indices of those ops that they mark, since the source lets them raise."""

_MARK = "gcomp.raises"


def mark(op: Operation) -> None:
    """Say that an index out of range of this op is an error in the source."""
    op.attributes[_MARK] = UnitAttr()


def is_marked(op: Operation) -> bool:
    """Whether an index out of range of this op is an error in the source."""
    return _MARK in op.attributes


def unmark(op: Operation) -> None:
    """Take the mark from an op."""
    op.attributes.pop(_MARK, None)


OUTPUTS = ("gcomp.check.number", "gcomp.check.iteration")
"""The names of the outputs that a checked program has besides its own."""

_TABLE = "gcomp.checks"
Row = Mapping[str, str]
"""The `kind` of a check, the `op` that it watches, the frontend's `node`, and the `place` in the source."""


def row_of(kind: str, op: Operation) -> Row:
    """The row of a check of an op."""
    around: Operation | None = op
    while around is not None and not describe(around.location):
        around = around.parent_op()
    located = list(parts(op.location if around is None else around.location))
    if isinstance(op, WeightOp):
        return {"kind": kind, "op": op.name, "node": op.symbol, "place": describe(op.location)}
    node = next((part.desc.data for part in located if isinstance(part, NameLoc)), "")
    place = next((describe(part) for part in located if isinstance(part, FileLineColLoc)), "")
    return {"kind": kind, "op": op.name, "node": node, "place": place}


def table_of(program: Program) -> list[Row]:
    """The checks of a program by their numbers; empty where it is not checked."""
    rows = cast("ArrayAttr[DictionaryAttr] | None", program.module.attributes.get(_TABLE))
    return [{k: cast(StringAttr, v).data for k, v in row.data.items()} for row in (rows.data if rows else ())]


def set_table(program: Program, rows: Sequence[Row]) -> None:
    """Write the table."""
    entries: list[Attribute] = [DictionaryAttr({k: StringAttr(v) for k, v in row.items()}) for row in rows]
    program.module.attributes[_TABLE] = ArrayAttr(entries)


__all__ = ["KINDS", "MARKED", "OUTPUTS", "Row", "is_marked", "mark", "row_of", "set_table", "table_of", "unmark"]
