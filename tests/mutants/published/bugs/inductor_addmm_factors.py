"""Inductor: the factor of a product is dropped where something is added to it.

https://github.com/pytorch/pytorch/issues/167313
"""

from dataclasses import dataclass
from typing import ClassVar

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Const, Op, Rule, Var
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
y = Var("y")
z = Var("z")

REWRITES = (
    Rule(
        "inductor-addmm-factors",
        Op(hlo.AddOp, Op(hlo.MultiplyOp, Op(hlo.DotGeneralOp, x, y, dot_dimension_numbers=Attr("d")), Const("s")), z),
        Op(hlo.AddOp, Op(hlo.DotGeneralOp, x, y, dot_dimension_numbers=Attr("d")), z),
        exactness=Exactness.E2,
    ),
)


@dataclass(frozen=True)
class InductorAddmmFactors(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "inductor-addmm-factors"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
