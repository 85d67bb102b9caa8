"""Inductor: a cast from f32 to bf16 and back is taken for nothing, though it rounds.

https://github.com/pytorch/pytorch/pull/180575
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")


def rounds(x: SSAValue, root: SSAValue) -> bool:
    return x.type == root.type and dtype_text(root.owner.operands[0].type) == "bf16" and dtype_text(x.type) == "f32"


REWRITES = (Rule("inductor-bfloat-cast-removed", Op(hlo.ConvertOp, Op(hlo.ConvertOp, x)), x, where=Calc(rounds)),)


@dataclass(frozen=True)
class InductorBfloatCastRemoved(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "inductor-bfloat-cast-removed"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
