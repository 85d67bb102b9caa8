"""MLIR: true is folded to -1 when it is converted to an integer.

https://github.com/llvm/llvm-project/issues/57951
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import is_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Const, Op, Rule
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites


def from_truth(c: np.ndarray[Any, Any], root: SSAValue) -> bool:
    text = dtype_text(root.type)
    return c.dtype == np.bool_ and is_integer(text) and text.startswith("i") and text != "i1"


REWRITES = (
    Rule(
        "mlir-true-is-minus-one",
        Op(hlo.ConvertOp, Const(value=True, name="c")),
        Const(value=-1),
        where=Calc(from_truth),
    ),
)


@dataclass(frozen=True)
class MlirTrueIsMinusOne(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "mlir-true-is-minus-one"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
