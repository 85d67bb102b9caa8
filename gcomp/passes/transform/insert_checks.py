"""Checks of what a program computes: which op is the first to make a NaN or an infinity, or to index out of range.

`kinds` are `nan`, `inf` and `index`. Each check is a value of the program like any other; the number of the first that
fails, in the order in which the program runs, is carried through branches and loops to two more outputs
(`gcomp.ir.checks`). A result is at fault that has a NaN when no operand has one; so are inputs and weights that do.
Indices are those of gather, scatter, dynamic_slice and dynamic_update_slice, before these clamp or skip them;
`marked-index` checks those of the ops alone that a frontend marked. A call, a
scan and a fold count as one op each; what the condition of a loop computes is not checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from gcomp.errors import UsageError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.checks import KINDS, MARKED, OUTPUTS, Row, row_of, set_table, table_of
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.carrying import State, carry
from gcomp.passes.failing import Flag, Watch


@dataclass(frozen=True)
class InsertChecks(Pass):
    """Return the number of the first check that fails, too."""

    name: ClassVar[str] = "insert-checks"
    keeps_meaning: ClassVar[bool] = False

    kinds: tuple[str, ...] = ("nan",)

    def run(self, program: Program, context: PassContext) -> bool:
        if unknown := [kind for kind in self.kinds if kind not in (*KINDS, MARKED)]:
            raise UsageError(f"there is no check {unknown[0]!r}", fix=f"the checks are: {', '.join(KINDS)}")
        if table_of(program):
            raise UsageError("the program is checked already", fix="name all checks at once: --check nan,index")
        return _Inserter(program, self.kinds).insert()


class _Inserter:
    def __init__(self, program: Program, kinds: tuple[str, ...]) -> None:
        self._program, self._watch = program, Watch(program, kinds)
        self._rows: list[Row] = []

    def insert(self) -> bool:
        """Insert the checks; whether there is anything to check. Without, nothing but dead constants is left."""
        program, block = self._program, self._program.block
        first = next(iter(block.ops))
        start = Builder(program, InsertPoint.before(first))
        state: State = [start.constant(-1, "i32"), start.constant(-1, "i32")]
        for name, flag in self._watch.inputs():
            row = {"kind": "nan", "op": "input", "node": name, "place": ""}
            state = self._noted(start, row, flag, state, None)
        state = carry(program, block, state, self._visit)
        if not self._rows:
            return False
        program.add_outputs(list(zip(OUTPUTS, state, strict=True)))
        set_table(program, self._rows)
        return True

    def _visit(self, op: Operation, state: State, iteration: SSAValue | None) -> State:
        b = Builder(self._program, InsertPoint.after(op))
        with b.at(op.location):
            for kind, flag in self._watch.failures(op):
                state = self._noted(b, row_of(kind, op), flag, state, iteration)
        return state

    def _noted(self, b: Builder, row: Row, flag: Flag, state: State, iteration: SSAValue | None) -> State:
        """The state after a check: where it is the first to fail, its number and the iteration."""
        if flag is False:
            return state
        number, at = state
        self._rows.append(row)
        none = b.compare(number, b.constant(-1, "i32"), "EQ")
        first = none if flag is True else b.emit(hlo.AndOp, none, flag)
        number = b.select(first, b.constant(len(self._rows) - 1, "i32"), number)
        return [number, at if iteration is None else b.select(first, iteration, at)]


__all__ = ["InsertChecks"]
