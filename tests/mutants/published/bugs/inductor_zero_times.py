"""Inductor: x * 0 is taken for 0, of floats too: NaN and infinities are lost.

https://github.com/pytorch/pytorch/pull/187580
https://github.com/tile-ai/tilelang/issues/2638
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.dtypes import is_float
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Const, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")


def floating(x: SSAValue) -> bool:
    return is_float(dtype_text(x.type))


REWRITES = (
    Rule(
        "inductor-zero-times",
        Op(hlo.MultiplyOp, x, Const(value=0.0), commutes=True),
        Const(value=0.0),
        where=Calc(floating),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class InductorZeroTimes(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "inductor-zero-times"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
