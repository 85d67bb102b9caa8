"""XLA: a / sqrt(b) becomes a * rsqrt(b), which rounds once more, in f64 too.

https://github.com/openxla/xla/pull/40844
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
y = Var("y")


def wide(x: SSAValue) -> bool:
    return dtype_text(x.type) == "f64"


REWRITES = (
    Rule(
        "xla-divide-by-sqrt",
        Op(hlo.DivideOp, x, Op(hlo.SqrtOp, y)),
        Op(hlo.MultiplyOp, x, Op(hlo.RsqrtOp, y)),
        where=Calc(wide),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class XlaDivideBySqrt(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-divide-by-sqrt"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
