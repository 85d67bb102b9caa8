"""XLA: sqrt(|x * x|) is taken for |x|, though the square overflows.

https://github.com/jax-ml/jax/issues/37919
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


def floating(x: SSAValue) -> bool:
    return is_float(dtype_text(x.type))


REWRITES = (
    Rule(
        "xla-sqrt-of-abs-of-square",
        Op(hlo.SqrtOp, Op(hlo.AbsOp, Op(hlo.MultiplyOp, x, x))),
        Op(hlo.AbsOp, x),
        where=Calc(floating),
        exactness=Exactness.E2,
    ),
)


@dataclass(frozen=True)
class XlaSqrtOfAbsOfSquare(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-sqrt-of-abs-of-square"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
