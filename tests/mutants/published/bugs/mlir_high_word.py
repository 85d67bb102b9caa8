"""MLIR: a wide product, shifted by any number of bits and made narrow, is taken for its high word.

https://github.com/llvm/llvm-project/pull/144844
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import bit_width, is_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Const, Op, Rule, Var
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
y = Var("y")


def wide(root: SSAValue) -> Any:
    return root.owner.operands[0].type


def width(root: SSAValue) -> int:
    return bit_width(dtype_text(root.type))


def widened(x: SSAValue, y: SSAValue, root: SSAValue, c: np.ndarray[Any, Any]) -> bool:
    if not (x.type == y.type == root.type and is_integer(dtype_text(x.type)) and is_integer(dtype_text(wide(root)))):
        return False
    return bit_width(dtype_text(wide(root))) > width(root) and bool((c != width(root)).all())


REWRITES = (
    Rule(
        "mlir-high-word",
        Op(
            hlo.ConvertOp,
            Op(hlo.ShiftRightLogicalOp, Op(hlo.MultiplyOp, Op(hlo.ConvertOp, x), Op(hlo.ConvertOp, y)), Const("c")),
        ),
        Op(
            hlo.ConvertOp,
            Op(
                hlo.ShiftRightLogicalOp,
                Op(
                    hlo.MultiplyOp,
                    Op(hlo.ConvertOp, x, type=Calc(wide)),
                    Op(hlo.ConvertOp, y, type=Calc(wide)),
                    type=Calc(wide),
                ),
                Op(hlo.ConvertOp, Const(value=Calc(width)), type=Calc(wide)),
                type=Calc(wide),
            ),
        ),
        where=Calc(widened),
    ),
)


@dataclass(frozen=True)
class MlirHighWord(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "mlir-high-word"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
