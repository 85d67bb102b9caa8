"""XLA: nested dynamic slices are one at the sum of the starts, none of them clamped.

https://github.com/openxla/xla/issues/49121
https://github.com/jax-ml/jax/issues/40849
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
i = Var("i")
j = Var("j")


def alike(i: SSAValue, j: SSAValue) -> bool:
    return i.type == j.type


REWRITES = (
    Rule(
        "xla-dynamic-slice-of-dynamic-slice",
        Op(hlo.DynamicSliceOp, Op(hlo.DynamicSliceOp, x, i, slice_sizes=Attr("a")), j, slice_sizes=Attr("c")),
        Op(hlo.DynamicSliceOp, x, Op(hlo.AddOp, i, j), slice_sizes=Attr("c")),
        where=Calc(alike),
    ),
)


@dataclass(frozen=True)
class XlaDynamicSliceOfDynamicSlice(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-dynamic-slice-of-dynamic-slice"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
