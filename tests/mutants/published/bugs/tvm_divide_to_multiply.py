"""TVM: x / c becomes x * (1 / c), which rounds twice.

https://github.com/apache/tvm/issues/16819
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
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


Array = np.ndarray[Any, Any]


def inverse(c: Array) -> Any:
    with np.errstate(all="ignore"):
        return (np.ones((), c.dtype) / c).reshape(-1)[0]


def uniform(x: SSAValue, c: Array) -> bool:
    return floating(x) and bool(c.size) and bool((c == c.reshape(-1)[0]).all())


REWRITES = (
    Rule(
        "tvm-divide-to-multiply",
        Op(hlo.DivideOp, x, Const("c")),
        Op(hlo.MultiplyOp, x, Const(value=Calc(inverse))),
        where=Calc(uniform),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class TvmDivideToMultiply(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tvm-divide-to-multiply"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
