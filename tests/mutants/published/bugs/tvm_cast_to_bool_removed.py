"""TVM: a float that is cast to a boolean and back is taken for itself.

https://github.com/apache/tvm/pull/13056
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")


def by_booleans(x: SSAValue, root: SSAValue) -> bool:
    return x.type == root.type and dtype_text(root.owner.operands[0].type) == "i1"


REWRITES = (Rule("tvm-cast-to-bool-removed", Op(hlo.ConvertOp, Op(hlo.ConvertOp, x)), x, where=Calc(by_booleans)),)


@dataclass(frozen=True)
class TvmCastToBoolRemoved(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tvm-cast-to-bool-removed"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
