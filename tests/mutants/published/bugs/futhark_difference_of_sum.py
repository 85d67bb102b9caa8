"""Futhark: x - (x + y) is taken for y.

https://github.com/diku-dk/futhark/issues/1194
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
y = Var("y")


def integral(x: SSAValue) -> bool:
    return is_integer(dtype_text(x.type))


REWRITES = (Rule("futhark-difference-of-sum", Op(hlo.SubtractOp, x, Op(hlo.AddOp, x, y)), y, where=Calc(integral)),)


@dataclass(frozen=True)
class FutharkDifferenceOfSum(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "futhark-difference-of-sum"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
