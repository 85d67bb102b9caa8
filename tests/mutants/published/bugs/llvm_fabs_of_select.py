"""LLVM: `x <= 0 ? 0 - x : x` is taken for |x|, though the sign of a NaN goes.

https://github.com/llvm/llvm-project/issues/113989
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


def floating(x: SSAValue) -> bool:
    return is_float(dtype_text(x.type))


REWRITES = (
    Rule(
        "llvm-fabs-of-select",
        Op(
            hlo.SelectOp,
            Op(hlo.CompareOp, x, Const(value=0.0), comparison_direction="LE"),
            Op(hlo.SubtractOp, Const(value=0.0), x),
            x,
        ),
        Op(hlo.AbsOp, x),
        where=Calc(floating),
    ),
)


@dataclass(frozen=True)
class LlvmFabsOfSelect(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "llvm-fabs-of-select"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
