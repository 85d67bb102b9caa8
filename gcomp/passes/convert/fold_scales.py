"""Sums of scaled values that are divided by a scale and rounded are scaled once: `round((x * a + b) / s)` is
`round(x * (a / s) + b / s)`.

Quantization divides what products were scaled by: with scales that are known before the program runs, the quotients
are, and no element is divided, which takes longer than all else that quantization does. A quotient of two constants is
rounded, and the division of the sum is not: E2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp.analysis.constants import stored_array
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, shape_of
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites

_LEAST, _GREATEST = 2.0**-60, 2.0**40
"""Scales between them neither over- nor underflow together."""
_DEEP = 8
"""Ops between a division and a scale, at most."""


class FoldScales(Pattern):
    """A quotient that is rounded, of sums and maxima of scaled values."""

    name = "fold-scales"
    roots = (hlo.RoundNearestEvenOp,)
    exactness = Exactness.E2

    def rewrite(self, op: hlo.RoundNearestEvenOp, b: Builder) -> Sequence[SSAValue] | None:
        quotient = op.operand
        if not (isinstance(quotient, OpResult) and isinstance(quotient.op, hlo.DivideOp)):
            return None
        scale = _number(quotient.op.rhs, b.program)
        if dtype_text(quotient.type) != "f32" or scale is None or not _LEAST <= scale <= _GREATEST:
            return None
        divided = _Divided(b, scale)
        if not divided.can(quotient.op.lhs, _DEEP):
            return None
        return [b.emit(hlo.RoundNearestEvenOp, divided.of(quotient.op.lhs))]


@dataclass(frozen=True)
class _Divided:
    """Values divided by a scale, where no element need be."""

    b: Builder
    scale: np.float32

    def can(self, value: SSAValue, depth: int) -> bool:
        """Whether a value can be divided so."""
        if _source(value, self.b.program) is not None:
            return True
        op = value.op if isinstance(value, OpResult) else None
        if depth == 0 or op is None:
            return False
        if isinstance(op, hlo.MultiplyOp):
            return any(_source(v, self.b.program) is not None for v in op.operands)
        if isinstance(op, hlo.AddOp | hlo.SubtractOp | hlo.MaximumOp):
            return value.has_one_use() and all(self.can(v, depth - 1) for v in op.operands)
        return False

    def of(self, value: SSAValue) -> SSAValue:
        """A value that `can` be divided, divided."""
        b = self.b
        if (source := _source(value, b.program)) is not None:
            return self._constant(value, source)
        assert isinstance(value, OpResult)
        op = value.op
        if isinstance(op, hlo.MultiplyOp):
            known = next(n for n in (1, 0) if _source(op.operands[n], b.program) is not None)
            return b.multiply(op.operands[1 - known], self.of(op.operands[known]))
        assert isinstance(op, hlo.AddOp | hlo.SubtractOp | hlo.MaximumOp)
        return b.emit(type(op), *[self.of(v) for v in op.operands])

    def _constant(self, value: SSAValue, source: np.ndarray) -> SSAValue:
        b, quotient = self.b, source / self.scale
        if not isinstance(value.owner, hlo.BroadcastInDimOp):
            return b.constant(quotient)
        return b.broadcast(b.constant(quotient), shape_of(value), tuple(value.owner.value("broadcast_dimensions")))


def _source(value: SSAValue, program: Program) -> np.ndarray | None:
    """The numbers that a value repeats, if they are known, and no moderate scale makes one too large or small."""
    if isinstance(value.owner, hlo.BroadcastInDimOp):
        value = value.owner.operand
    array = stored_array(value, program)
    if array is None or array.dtype != np.float32:
        return None
    sizes = np.abs(array[array != 0])
    return array if not sizes.size or (sizes.min() >= _LEAST and sizes.max() <= _GREATEST) else None


def _number(value: SSAValue, program: Program) -> np.float32 | None:
    """The one number that a value repeats, if it is known."""
    array = _source(value, program)
    return array.reshape(-1)[0] if array is not None and array.size == 1 else None


@dataclass(frozen=True)
class FoldScalesPass(Pass):
    """Scale what is quantized once."""

    name: ClassVar[str] = "fold-scales"
    exactness: ClassVar[Exactness] = Exactness.E2

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (FoldScales(),), context)
