"""XLA, MLIR: atan2(0, 0) is folded to NaN.

https://github.com/openxla/xla/pull/46594
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dtypes import is_float
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Const, Op, Rule
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites


def real(root: SSAValue) -> bool:
    return is_float(dtype_text(root.type))


REWRITES = (
    Rule(
        "xla-angle-of-origin",
        Op(hlo.Atan2Op, Const(value=0.0), Const(value=0.0)),
        Const(value=float("nan")),
        where=Calc(real),
    ),
)


@dataclass(frozen=True)
class XlaAngleOfOrigin(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-angle-of-origin"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
