"""xDSL: `x > y ? x : y` is taken for the maximum, which passes on a NaN in x.

https://github.com/xdslproject/xdsl/pull/4251
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
        "xdsl-select-is-maximum",
        Op(hlo.SelectOp, Op(hlo.CompareOp, x, y, comparison_direction="GT"), x, y),
        Op(hlo.MaximumOp, x, y),
        where=Calc(floating),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class XdslSelectIsMaximum(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xdsl-select-is-maximum"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
