"""XLA: log(exp(x)) is taken for x, though exp overflows.

https://github.com/openxla/xla/issues/42732
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
    Rule("xla-log-of-exp", Op(hlo.LogOp, Op(hlo.ExponentialOp, x)), x, where=Calc(floating), exactness=Exactness.E2),
)


@dataclass(frozen=True)
class XlaLogOfExp(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-log-of-exp"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
