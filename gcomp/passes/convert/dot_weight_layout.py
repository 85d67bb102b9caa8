"""A weight matrix on the right of a dot lies the way that the CPU's matrix product reads fastest.

With several rows on the left, `[k, n]` (contracting dimension first): 1.2 times faster than `[n, k]` through YNNPACK,
4 times through Eigen. With one row, `[n, k]`: each result element then reads consecutive memory
(docs/guides/benchmarks.md). Only weights with a single reader change, since the transpose is folded into them
(`fold-constants` must run next).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.rules import Attr, Calc, Op, Rule, Var
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import rank_of, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import apply_rewrites

x, w = Var("x"), Var("w")


def _is_matrix(w: SSAValue, d: DotDimensions) -> bool:
    return rank_of(w) == 2 and len(d.rhs_contracting_dimensions) == 1 and not d.rhs_batching_dimensions


def _other_dimension(d: DotDimensions) -> DotDimensions:
    (contracted,) = d.rhs_contracting_dimensions
    return d._replace(rhs_contracting_dimensions=(1 - contracted,))


def _lies_otherwise(x: SSAValue, w: SSAValue, d: DotDimensions) -> bool:
    """Whether this is a weight's only reader, and another layout is read faster."""
    rows = dims.product([shape_of(x)[i] for i in d.lhs_free(rank_of(x))])
    wanted = 1 if rows == 1 else 0
    is_single = isinstance(w, OpResult) and isinstance(w.op, WeightOp) and w.has_one_use()
    return is_single and d.rhs_contracting_dimensions != (wanted,)


LAY_WEIGHT = Rule(
    "dot-weight-layout",
    Op(hlo.DotGeneralOp, x, w, dot_dimension_numbers=Attr("d")),
    Op(hlo.DotGeneralOp, x, Op(hlo.TransposeOp, w, permutation=(1, 0)), like="root",
       dot_dimension_numbers=Calc(_other_dimension)),
    where=Calc(_is_matrix),
    profit=Calc(_lies_otherwise),
    exactness=Exactness.E2,
)  # fmt: skip
"""Transpose a matrix weight to the wanted order, and read it by the other contracting dimension."""


@dataclass(frozen=True)
class DotWeightLayout(Pass):
    """Lay out the matrix weights of dots."""

    name: ClassVar[str] = "dot-weight-layout"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (LAY_WEIGHT,), context)
