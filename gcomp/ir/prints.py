"""The prints of a program: which there are, and the program without them."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from gcomp.ir import stablehlo as hlo
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.printing import PrintOp
from gcomp.ir.program import Program


def prints_of(program: Program) -> list[PrintOp]:
    """All prints, those of functions among them."""
    return [op for op in program.ops() if isinstance(op, PrintOp)]


def remove_prints(program: Program) -> None:
    """Remove all prints that are not threaded, and branches that do nothing without them."""
    for op in prints_of(program):
        if not op.results:
            _erase(op)


def _erase(op: Operation) -> None:
    around = op.parent_op()
    Rewriter.erase_op(op)
    if isinstance(around, hlo.IfOp | hlo.CaseOp) and not around.results and is_side_effect_free(around):
        _erase(around)


__all__ = ["prints_of", "remove_prints"]
