"""Prints kept in order by data: each takes how many came before it, and the program returns how many there were.

For targets that order what they run by data alone. Elements that are no whole bytes are widened to be printed. Calls
are inlined before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.dtypes import bit_width
from gcomp.ir.builder import Builder
from gcomp.ir.printing import COUNT, PrintOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.carrying import State, carry

OUTPUT = "gcomp.prints"
"""The name of the output that says how many prints there were."""


@dataclass(frozen=True)
class ThreadPrints(Pass):
    """Thread a count through all prints, and return it."""

    name: ClassVar[str] = "thread-prints"
    keeps_meaning: ClassVar[bool] = False

    def run(self, program: Program, context: PassContext) -> bool:
        if not any(isinstance(op, PrintOp) and not op.results for op in program.ops()):
            return False
        block = program.block
        first = next(iter(block.ops))
        start: State = [Builder(program, InsertPoint.before(first)).constant(0, "i32")]

        def visit(op: Operation, state: State, iteration: SSAValue | None) -> State:
            return [_thread(program, op, state[0])] if isinstance(op, PrintOp) else state

        (count,) = carry(program, block, start, visit)
        program.add_outputs([(OUTPUT, count)])
        return True


def _thread(program: Program, op: PrintOp, before: SSAValue) -> SSAValue:
    """Put a print that takes and gives a count in the place of one that does not; what it gives."""
    b, text = Builder(program, InsertPoint.before(op)), op.value("format")
    with b.at(op.location):
        values = [_whole(b, value) for value in op.printed]
        for i, (value, whole) in enumerate(zip(op.printed, values, strict=True)):
            if whole is not value:
                text = _with_type(text, i, dtype_text(value.type))
        made = b.emit(PrintOp, before, *values, types=(COUNT,), format=StringAttr(text))
    Rewriter.erase_op(op)
    return made


def _whole(b: Builder, value: SSAValue) -> SSAValue:
    text = dtype_text(value.type)
    if text == "i1" or bit_width(text) >= 8:
        return value
    return b.convert(value, "f32" if text[0] == "f" else "ui8" if text.startswith("ui") else "i8")


def _with_type(text: str, operand: int, name: str) -> str:
    """A format in which the type of an operand is written out."""
    found = text.replace(f"{{{operand}.dtype}}", name)
    return found if operand else found.replace("{dtype}", name)


__all__ = ["OUTPUT", "ThreadPrints"]
