"""TVM: the remainder of two constants is folded to their product.

https://github.com/apache/tvm/issues/2486
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Calc, Const, Op, Rule
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites


def product(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Any:
    return (a * b).reshape(-1)[0]


def uniform(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return all(v.size and (v == v.reshape(-1)[0]).all() for v in (a, b)) and a.dtype in (np.int8, np.int32, np.int64)


REWRITES = (
    Rule(
        "tvm-remainder-folds-to-product",
        Op(hlo.RemainderOp, Const("a"), Const("b")),
        Const(value=Calc(product)),
        where=Calc(uniform),
    ),
)


@dataclass(frozen=True)
class TvmRemainderFoldsToProduct(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tvm-remainder-folds-to-product"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
