"""IREE: sign(x) becomes comparisons with 0, which are false for NaN.

https://github.com/iree-org/iree/issues/24502
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from gcomp.dtypes import is_float
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Const, Op, Rule, Var
from gcomp.ir.types import dtype_text, with_element
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")


def floating(x: SSAValue) -> bool:
    return is_float(dtype_text(x.type))


def truth(x: SSAValue) -> Any:
    return with_element(x, "i1")


REWRITES = (
    Rule(
        "iree-sign-of-nan",
        Op(hlo.SignOp, x),
        Op(
            hlo.SelectOp,
            Op(hlo.CompareOp, x, Const(value=0.0, like="x"), comparison_direction="GT", type=Calc(truth)),
            Const(value=1.0),
            Op(
                hlo.SelectOp,
                Op(hlo.CompareOp, x, Const(value=0.0, like="x"), comparison_direction="LT", type=Calc(truth)),
                Const(value=-1.0),
                Const(value=0.0),
            ),
        ),
        where=Calc(floating),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class IreeSignOfNan(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "iree-sign-of-nan"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
