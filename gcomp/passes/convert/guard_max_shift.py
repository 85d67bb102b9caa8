"""What is shifted by its own maximum stays at or below 0, though the backend multiplies and subtracts in one rounding.

In a softmax, `x - max(x)` is at most 0, so its exponential cannot overflow. Where x is a product, XLA:CPU recomputes it
inside the subtraction and contracts both into a fused multiply-add, whose unrounded product may lie above the rounded
maximum: by half an ulp of x, which for a large x is a large number. `minimum(x, max(x)) - max(x)` has the same bits and
is no multiply-add: E0. Only products need it; elsewhere it would cost an operation per element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import OpResult, SSAValue

from gcomp.analysis.spreads import Read, same
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites

_MOVES = (hlo.BroadcastInDimOp, hlo.ReshapeOp, hlo.TransposeOp, hlo.SliceOp, hlo.ReverseOp)
"""What a fusion recomputes without an operation of its own between the product and the subtraction."""


def _is_product(value: SSAValue) -> bool:
    while isinstance(value, OpResult) and isinstance(value.op, _MOVES):
        value = value.op.operands[0]
    # The backend divides by a constant by multiplying.
    return isinstance(value, OpResult) and isinstance(value.op, hlo.MultiplyOp | hlo.DivideOp)


class GuardMaxShift(Pattern):
    """A product less its own maximum: the product is bounded by that maximum first."""

    name = "guard-max-shift"
    roots = (hlo.SubtractOp,)

    def rewrite(self, op: hlo.SubtractOp, b: Builder) -> Sequence[SSAValue] | None:
        if not _is_product(op.lhs):
            return None
        # Where each maximum is subtracted counts: only below those of its own row does a number stay the same.
        found = Read.of(op.rhs).folded_read(hlo.MaximumOp, initial=False)
        if found is None or not same(found[0], Read.of(op.lhs)):
            return None
        return [b.subtract(b.emit(hlo.MinimumOp, op.lhs, op.rhs), op.rhs)]


@dataclass(frozen=True)
class GuardMaxShiftPass(Pass):
    """Bound products by the maximum that is subtracted from them."""

    name: ClassVar[str] = "guard-max-shift"
    exactness: ClassVar[Exactness] = Exactness.E0

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (GuardMaxShift(),), context)
