"""Quantized values that are read as f32 numbers again are not converted to integers in between.

Between QuantizeLinear and DequantizeLinear lies `convert(convert(q))`, q being a rounded number, clamped to an 8-bit
type's limits: each is an integer that both types hold, so that q itself is the result, up to the sign of zero: E1. The
CPU converts to 8 bits with comparisons that make NaN and large numbers what the conversion says; q is neither. Run
it after the passes that look for quantized values in 8 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp.analysis.quantized_values import LIMITS, source_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


def _number(value: SSAValue) -> float | None:
    """The one number that a constant, or a broadcast of one, holds everywhere."""
    while isinstance(value, OpResult) and isinstance(value.op, hlo.BroadcastInDimOp | hlo.ReshapeOp):
        value = value.op.operand
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.ConstantOp)):
        return None
    array = value.op.elements_attr.array()
    return float(array.flat[0]) if array.size and (array == array.flat[0]).all() else None


def _is_integral(value: SSAValue) -> bool:
    """Whether all elements are integers, infinities or NaN: rounded numbers, integers, or sums of those."""
    todo, seen = [value], set[SSAValue]()
    while todo:
        part = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        op = part.op if isinstance(part, OpResult) else None
        if isinstance(op, hlo.AddOp):
            todo += op.operands
        elif not isinstance(op, hlo.RoundNearestEvenOp) and not _is_integer(part):
            return False
    return True


def _is_integer(value: SSAValue) -> bool:
    while isinstance(value, OpResult) and isinstance(value.op, hlo.BroadcastInDimOp | hlo.ReshapeOp):
        value = value.op.operand
    if source_integer(value, "f32") is not None:
        return True
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.ConstantOp)):
        return False
    array = value.op.elements_attr.array()
    return bool((np.rint(array) == array).all())


def _match_clamp(value: SSAValue) -> tuple[SSAValue, float, float] | None:
    """What `select(x >= low, minimum(x, high), low)` clamps, and the limits. NaN becomes the lower one."""
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.SelectOp)):
        return None
    above, least, low = value.op.operands
    if not (isinstance(above, OpResult) and isinstance(above.op, hlo.CompareOp)):
        return None
    if not (isinstance(least, OpResult) and isinstance(least.op, hlo.MinimumOp)):
        return None
    if above.op.value("compare_type") == "TOTALORDER":
        return None  # NaN is above the limit there
    x, (bound, limit) = above.op.lhs, (_number(low), _number(above.op.rhs))
    others = [v for v in least.op.operands if v is not x]
    if above.op.value("comparison_direction") != "GE" or bound is None or bound != limit or len(others) != 1:
        return None
    high = _number(others[0])
    return None if high is None else (x, bound, high)


class KeptQuantizedValues(Pattern):
    """Quantized values converted to 8 bits and back."""

    name = "kept-quantized-values"
    roots = (hlo.ConvertOp,)
    exactness = Exactness.E1

    def rewrite(self, op: hlo.ConvertOp, b: Builder) -> Sequence[SSAValue] | None:
        quantized = source_integer(op.result, "f32")
        if quantized is None or not (isinstance(quantized, OpResult) and isinstance(quantized.op, hlo.ConvertOp)):
            return None
        source = quantized.op.operand
        if dtype_text(source.type) != "f32" or (found := _match_clamp(source)) is None:
            return None
        x, low, high = found
        least, greatest = LIMITS[dtype_text(quantized.type)]
        held = least <= low <= high <= greatest and low == round(low) and high == round(high)
        return [source] if held and _is_integral(x) else None


@dataclass(frozen=True)
class QuantizedValuesInF32(Pass):
    """Keep quantized values in f32 where they are read as f32."""

    name: ClassVar[str] = "quantized-values-in-f32"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (KeptQuantizedValues(),), context)
