"""TVM: (x / 2 * 2) % 4 becomes x % 4.

https://github.com/apache/tvm/pull/10336
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


def integral(x: SSAValue) -> bool:
    return is_integer(dtype_text(x.type))


REWRITES = (
    Rule(
        "tvm-remainder-of-multiple",
        Op(
            hlo.RemainderOp,
            Op(hlo.MultiplyOp, Op(hlo.DivideOp, x, Const("a", value=2)), Const("b", value=2)),
            Const("c", value=4),
        ),
        Op(hlo.RemainderOp, x, Const(value=4)),
        where=Calc(integral),
    ),
)


@dataclass(frozen=True)
class TvmRemainderOfMultiple(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tvm-remainder-of-multiple"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
