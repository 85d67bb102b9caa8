"""Interpreters whose ops give other results than the reference's: for what may differ, and what depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import cast

from xdsl.ir import Operation

from gcomp.ir.families import PLAIN
from gcomp.ir.op import GraphOp
from gcomp.ir.program import Program
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.table import Meaning, Scope, Value

PlainRow = Callable[[Operation, Sequence[Value], Scope], Sequence[Value]]
"""A row of the table of meanings that returns its results."""

MOVES = frozenset(
    ("after_all", "bitcast_convert", "broadcast", "broadcast_in_dim", "call", "case", "complex", "composite",
     "concatenate", "constant", "constant_like", "create_token", "dim", "dynamic_broadcast_in_dim", "dynamic_gather",
     "dynamic_iota", "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather",
     "get_dimension_size", "get_tuple_element", "if", "imag", "iota", "optimization_barrier", "pad", "partition_id",
     "print", "real", "real_dynamic_slice", "replica_id", "reshape", "reshard", "reverse", "select",
     "sharding_constraint", "sharding_group", "slice", "transpose", "tuple", "view_as_complex", "view_as_real",
     "weight", "while")
)  # fmt: skip
"""Ops that compute nothing by themselves."""


def short_name(op: Operation) -> str:
    """An op's name without its dialect; the broadcasting forms of chlo go by the name of what they apply."""
    return name_of(type(op))


@cache
def name_of(op: type[Operation]) -> str:
    """The same of an op class."""
    plain = PLAIN.get(cast("type[GraphOp]", op), op)
    return plain.name.partition(".")[2] or plain.name


class VariedInterpreter(Interpreter):
    """An interpreter with the rows that `varied` makes of the table's."""

    def __init__(self, program: Program, *, max_steps: int | None = None) -> None:
        super().__init__(program, max_steps=max_steps)
        self._meanings = _VariedRows(self._meanings, self.varied)

    def varied(self, row: PlainRow) -> PlainRow:
        """The row to use in place of one that returns its results."""
        raise NotImplementedError


class _VariedRows(Mapping[type[Operation], Meaning]):
    """A table whose rows `vary` makes of those of another, each when it is asked for: a program has few kinds of ops,
    and an interpreter may run once."""

    def __init__(self, rows: Mapping[type[Operation], Meaning], vary: Callable[[PlainRow], PlainRow]) -> None:
        self._rows, self._vary = rows, vary
        self._varied: dict[type[Operation], Meaning] = {}

    def __getitem__(self, op: type[Operation]) -> Meaning:
        if op not in self._varied:
            meaning = self._rows[op]
            varied = meaning if meaning.enters else replace(meaning, row=self._vary(cast(PlainRow, meaning.row)))
            self._varied[op] = varied
        return self._varied[op]

    def __iter__(self) -> Iterator[type[Operation]]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
