"""XLA: an update of a slice that is put back is one update at the sum of the starts, none of them clamped.

https://github.com/openxla/xla/pull/48024
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
y = Var("y")
i = Var("i")
j = Var("j")


def alike(i: SSAValue, j: SSAValue) -> bool:
    return i.type == j.type


REWRITES = (
    Rule(
        "xla-nested-update",
        Op(
            hlo.DynamicUpdateSliceOp,
            x,
            Op(hlo.DynamicUpdateSliceOp, Op(hlo.DynamicSliceOp, x, i, slice_sizes=Attr("a")), y, j),
            i,
        ),
        Op(hlo.DynamicUpdateSliceOp, x, y, Op(hlo.AddOp, i, j)),
        where=Calc(alike),
    ),
)


@dataclass(frozen=True)
class XlaNestedUpdate(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-nested-update"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
