"""TensorRT: clip(x, 0, high) becomes max(x, 0).

https://github.com/NVIDIA/TensorRT/issues/4606
"""

from dataclasses import dataclass
from typing import ClassVar

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Const, Op, Rule, Var
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
y = Var("y")

REWRITES = (
    Rule(
        "tensorrt-clip-loses-its-bound",
        Op(hlo.ClampOp, Const(value=0), x, y),
        Op(hlo.MaximumOp, x, Const(value=0)),
        exactness=Exactness.E1,
    ),
)


@dataclass(frozen=True)
class TensorrtClipLosesItsBound(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "tensorrt-clip-loses-its-bound"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
