"""ONNX optimizer: the permutations of two transposes are composed the wrong way round.

https://github.com/onnx/onnx/issues/2446
"""

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.ir.types import shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")

Ints = tuple[int, ...]


def composed(p: Ints, q: Ints) -> Ints:
    return tuple(q[i] for i in p)


def shaped(x: SSAValue, root: SSAValue, p: Ints, q: Ints) -> bool:
    return tuple(shape_of(x)[i] for i in composed(p, q)) == shape_of(root)


REWRITES = (
    Rule(
        "onnx-consecutive-transposes",
        Op(hlo.TransposeOp, Op(hlo.TransposeOp, x, permutation=Attr("p")), permutation=Attr("q")),
        Op(hlo.TransposeOp, x, permutation=Calc(composed)),
        where=Calc(shaped),
    ),
)


@dataclass(frozen=True)
class OnnxConsecutiveTransposes(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "onnx-consecutive-transposes"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
