"""TVM: max(x, 0) * s becomes max(x * s, 0), also where s is negative.

https://github.com/apache/tvm/issues/16211
https://github.com/apache/tvm/issues/17151
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dtypes import is_float
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Const, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
s = Var("s")


def floating(x: SSAValue) -> bool:
    return is_float(dtype_text(x.type))


REWRITES = (
    Rule(
        "tvm-scale-before-relu",
        Op(hlo.MultiplyOp, Op(hlo.MaximumOp, x, Const(value=0.0)), s),
        Op(hlo.MaximumOp, Op(hlo.MultiplyOp, x, s), Const(value=0.0)),
        where=Calc(floating),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class TvmScaleBeforeRelu(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tvm-scale-before-relu"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
