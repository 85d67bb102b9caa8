"""What a program takes and returns as complex numbers is read and written as the pairs of real ones that memory holds.

Run it after `complex-to-pairs`: then parts are taken of inputs only, and put together for results only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import OpResult, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import rank_of, shape_of
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp
from gcomp.pairs.parts import holds_complex
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class PartOfView(Pattern):
    """A part of complex numbers is every other number of their pairs."""

    name = "part-of-view"
    roots = (hlo.RealOp, hlo.ImagOp)

    def rewrite(self, op: hlo.RealOp | hlo.ImagOp, b: Builder) -> Sequence[SSAValue] | None:
        x = op.operand
        if not holds_complex(x) or (isinstance(x, OpResult) and isinstance(x.op, hlo.ComplexOp)):
            return None
        which, axis = int(isinstance(op, hlo.ImagOp)), rank_of(x)
        pairs = b.emit(ViewAsRealOp, x)
        return [b.reshape(b.slice_axis(pairs, axis, which, which + 1), shape_of(x))]


class ViewOfParts(Pattern):
    """Complex numbers of two parts are a view of both, side by side."""

    name = "view-of-parts"
    roots = (hlo.ComplexOp,)

    def rewrite(self, op: hlo.ComplexOp, b: Builder) -> Sequence[SSAValue] | None:
        shape = shape_of(op.lhs)
        sides = [b.reshape(part, (*shape, 1)) for part in op.operands]
        return [b.emit(ViewAsComplexOp, b.concatenate(sides, len(shape)))]


@dataclass(frozen=True)
class ViewAsReal(Pass):
    """Read and write complex numbers as pairs of real ones."""

    name: ClassVar[str] = "view-as-real"

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (PartOfView(), ViewOfParts()), context)
