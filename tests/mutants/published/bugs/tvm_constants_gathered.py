"""TVM: (x + c) + d becomes x + (c + d), of floats too.

https://github.com/apache/tvm/issues/16211
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


def total(c: Array, d: Array) -> Any:
    return (c + d).reshape(-1)[0]


def uniform(x: SSAValue, c: Array, d: Array) -> bool:
    return floating(x) and all(v.size and (v == v.reshape(-1)[0]).all() for v in (c, d))


REWRITES = (
    Rule(
        "tvm-constants-gathered",
        Op(hlo.AddOp, Op(hlo.AddOp, x, Const("c")), Const("d")),
        Op(hlo.AddOp, x, Const(value=Calc(total))),
        where=Calc(uniform),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class TvmConstantsGathered(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tvm-constants-gathered"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
