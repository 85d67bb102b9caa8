"""A weight matrix on the right of a dot lies the way that the CPU's matrix product reads fastest.

With several rows on the left, `[k, n]` (contracting dimension first): 1.2 times faster than `[n, k]` through YNNPACK,
4 times through Eigen. With one row, `[n, k]`: each result element then reads consecutive memory (docs/benchmarks.md).
Only weights with a single reader change, since the transpose is folded into them (`fold-constants` must run next).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import OpResult, SSAValue

from gcomp import dims
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.structures import DotDimensions
from gcomp.ir.types import rank_of, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


class LayWeight(Pattern):
    """Transpose a matrix weight to the wanted order, and read it by the other contracting dimension."""

    name = "dot-weight-layout"
    roots = (hlo.DotGeneralOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.DotGeneralOp, b: Builder) -> Sequence[SSAValue] | None:
        d = op.dimensions
        single = isinstance(op.rhs, OpResult) and isinstance(op.rhs.op, WeightOp) and op.rhs.has_one_use()
        if not single or rank_of(op.rhs) != 2 or len(d.rhs_contracting_dimensions) != 1 or d.rhs_batching_dimensions:
            return None
        rows = dims.product([s for i, s in enumerate(shape_of(op.lhs)) if i not in d.lhs_contracting_dimensions])
        wanted = 1 if rows == 1 else 0
        if d.rhs_contracting_dimensions == (wanted,):
            return None
        numbers = DotDimensions((), (), d.lhs_contracting_dimensions, (wanted,))
        properties: dict[str, Any] = {**op.properties, "dot_dimension_numbers": numbers}
        weight = b.transpose(op.rhs, (1, 0))
        return [b.emit(hlo.DotGeneralOp, op.lhs, weight, types=(op.result.type,), **properties)]


@dataclass(frozen=True)
class DotWeightLayout(Pass):
    """Lay out the matrix weights of dots."""

    name: ClassVar[str] = "dot-weight-layout"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (LayWeight(),), context)
