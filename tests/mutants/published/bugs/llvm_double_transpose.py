"""LLVM: two transposes undo each other, whatever they do, where the shapes allow it.

https://github.com/llvm/llvm-project/pull/135397
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")


def shaped(x: SSAValue, root: SSAValue) -> bool:
    return x.type == root.type


REWRITES = (
    Rule(
        "llvm-double-transpose",
        Op(hlo.TransposeOp, Op(hlo.TransposeOp, x, permutation=Attr("p")), permutation=Attr("q")),
        x,
        where=Calc(shaped),
    ),
)


@dataclass(frozen=True)
class LlvmDoubleTranspose(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "llvm-double-transpose"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
