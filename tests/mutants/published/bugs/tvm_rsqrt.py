"""TVM: a / sqrt(b) becomes a * rsqrt(b), which rounds once more and overflows sooner.

https://github.com/apache/tvm/issues/16211
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dtypes import is_float
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
y = Var("y")


def floating(x: SSAValue) -> bool:
    return is_float(dtype_text(x.type))


REWRITES = (
    Rule(
        "tvm-rsqrt",
        Op(hlo.DivideOp, x, Op(hlo.SqrtOp, y)),
        Op(hlo.MultiplyOp, x, Op(hlo.RsqrtOp, y)),
        where=Calc(floating),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class TvmRsqrt(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tvm-rsqrt"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
