"""ONNX Runtime: log1p(exp(x)) is computed as log(1 + exp(x)), which loses small ones.

https://github.com/microsoft/onnxruntime/issues/10491
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
        "ort-softplus",
        Op(hlo.LogPlusOneOp, Op(hlo.ExponentialOp, x)),
        Op(hlo.LogOp, Op(hlo.AddOp, Op(hlo.ExponentialOp, x), Const(value=1.0))),
        where=Calc(floating),
        exactness=Exactness.E2,
    ),
)


@dataclass(frozen=True)
class OrtSoftplus(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "ort-softplus"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
