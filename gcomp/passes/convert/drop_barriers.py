"""Optimization barriers go, where nothing is left that they hold back: a target's last passes over the graph are done.

They keep cse from joining what is computed twice to save memory, and have no meaning of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class Barrier(Pattern):
    """A barrier's results are its operands."""

    name = "drop-barrier"
    roots = (hlo.OptimizationBarrierOp,)

    def rewrite(self, op: hlo.OptimizationBarrierOp, b: Builder) -> Sequence[SSAValue] | None:
        return list(op.operands)


@dataclass(frozen=True)
class DropBarriers(Pass):
    """Remove optimization barriers."""

    name: ClassVar[str] = "drop-barriers"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (Barrier(),), context)
