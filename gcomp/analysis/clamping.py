"""Numbers that are rounded and clamped before they become integers: what quantization makes of them."""

from __future__ import annotations

import numpy as np
from xdsl.ir import OpResult, SSAValue

from gcomp.analysis.quantized_values import LIMITS, source_integer
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text


def number_of(value: SSAValue) -> float | None:
    """The one number that a constant, or a broadcast of one, holds everywhere."""
    while isinstance(value, OpResult) and isinstance(value.op, hlo.BroadcastInDimOp | hlo.ReshapeOp):
        value = value.op.operand
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.ConstantOp)):
        return None
    array = value.op.elements_attr.array()
    return float(array.flat[0]) if array.size and (array == array.flat[0]).all() else None


def is_integral(value: SSAValue) -> bool:
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


def match_clamp(value: SSAValue) -> tuple[SSAValue, float, float] | None:
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
    x, (bound, limit) = above.op.lhs, (number_of(low), number_of(above.op.rhs))
    others = [v for v in least.op.operands if v is not x]
    if above.op.value("comparison_direction") != "GE" or bound is None or bound != limit or len(others) != 1:
        return None
    high = number_of(others[0])
    return None if high is None else (x, bound, high)


def match_quantized(value: SSAValue) -> tuple[SSAValue, float, float] | None:
    """What is clamped and then converted to an integer type that holds the limits, and the limits."""
    if not (isinstance(value, OpResult) and isinstance(value.op, hlo.ConvertOp)):
        return None
    limits, found = LIMITS.get(dtype_text(value.type)), match_clamp(value.op.operand)
    if limits is None or found is None or dtype_text(value.op.operand.type) != "f32":
        return None
    low, high = found[1:]
    held = limits[0] <= low <= high <= limits[1] and low == round(low) and high == round(high)
    return found if held else None
