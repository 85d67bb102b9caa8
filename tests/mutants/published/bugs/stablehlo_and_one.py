"""StableHLO: x & 1 is taken for x, of integers too.

https://github.com/openxla/stablehlo/pull/2638
"""

from dataclasses import dataclass
from typing import ClassVar

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Const, Op, Rule, Var
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")

REWRITES = (Rule("stablehlo-and-one", Op(hlo.AndOp, x, Const(value=1), commutes=True), x),)


@dataclass(frozen=True)
class StablehloAndOne(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "stablehlo-and-one"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
