"""TVM: (x * c + y) / c becomes x + y / c, though division cuts off towards 0.

https://github.com/apache/tvm/issues/2173
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dtypes import is_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Const, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
y = Var("y")


def integral(x: SSAValue) -> bool:
    return is_integer(dtype_text(x.type))


REWRITES = (
    Rule(
        "tvm-quotient-of-sum",
        Op(hlo.DivideOp, Op(hlo.AddOp, Op(hlo.MultiplyOp, x, Const("c", value=3)), y), Const("d", value=3)),
        Op(hlo.AddOp, x, Op(hlo.DivideOp, y, Const(value=3))),
        where=Calc(integral),
    ),
)


@dataclass(frozen=True)
class TvmQuotientOfSum(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tvm-quotient-of-sum"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
