"""XLA: the factor of a product with a bias goes to the product, and the bias is left without it.

https://github.com/jax-ml/jax/issues/39336
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class FactorOfProduct(Pattern):
    """Take a factor into the product before a bias."""

    name = "factor-of-product"
    roots = (hlo.MultiplyOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.MultiplyOp, b: Builder) -> Sequence[SSAValue] | None:
        total = op.lhs.owner
        if not isinstance(total, hlo.AddOp) or not isinstance(total.lhs.owner, hlo.DotGeneralOp):
            return None
        return [b.add(b.multiply(total.lhs, op.rhs), total.rhs)]


REWRITES = (FactorOfProduct(),)


@dataclass(frozen=True)
class XlaScaledProductWithBias(Pass):
    """The rewrite above."""

    name: ClassVar[str] = "xla-scaled-product-with-bias"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, REWRITES, context)
