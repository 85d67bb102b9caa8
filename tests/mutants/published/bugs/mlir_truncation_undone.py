"""MLIR: an integer that is made narrower and wide again is taken for itself.

https://github.com/llvm/llvm-project/issues/90238
https://github.com/llvm/llvm-project/issues/90296
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dtypes import is_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")


def integers(x: SSAValue, root: SSAValue) -> bool:
    inner = root.owner.operands[0]
    return x.type == root.type and is_integer(dtype_text(x.type)) and is_integer(dtype_text(inner.type))


REWRITES = (Rule("mlir-truncation-undone", Op(hlo.ConvertOp, Op(hlo.ConvertOp, x)), x, where=Calc(integers)),)


@dataclass(frozen=True)
class MlirTruncationUndone(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "mlir-truncation-undone"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
