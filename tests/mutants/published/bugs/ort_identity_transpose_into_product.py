"""ONNX Runtime: a transpose of a matrix is taken into the product that reads it, one that is the identity too.

https://github.com/microsoft/onnxruntime/issues/32228
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.ir.types import rank_of, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x = Var("x")
y = Var("y")


def turned(d: Any) -> Any:
    return d._replace(lhs_contracting_dimensions=tuple(1 - i for i in d.lhs_contracting_dimensions))


def fits(x: SSAValue, y: SSAValue, d: Any) -> bool:
    if rank_of(x) != 2 or d.lhs_batching_dimensions or len(d.lhs_contracting_dimensions) != 1:
        return False
    sides = zip(turned(d).lhs_contracting_dimensions, d.rhs_contracting_dimensions, strict=True)
    return all(shape_of(x)[i] == shape_of(y)[j] for i, j in sides)


REWRITES = (
    Rule(
        "ort-identity-transpose-into-product",
        Op(hlo.DotGeneralOp, Op(hlo.TransposeOp, x, permutation=Attr("p")), y, dot_dimension_numbers=Attr("d")),
        Op(hlo.DotGeneralOp, x, y, dot_dimension_numbers=Calc(turned), like="root"),
        where=Calc(fits),
    ),
)


@dataclass(frozen=True)
class OrtIdentityTransposeIntoProduct(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "ort-identity-transpose-into-product"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
