"""Powers of integers, modulo 2 ** width, as products."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dtypes import bit_width
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text


def power(b: Builder, base: SSAValue, exponent: SSAValue) -> SSAValue:
    """base ** exponent by repeated squaring; of a negative exponent 0, unless the base is 1 or -1."""
    text = dtype_text(base.type)
    one, zero = b.full_like(base, 1), b.full_like(base, 0)
    result, square = one, base
    width = bit_width(text)
    # The bits of a negative exponent decide for -1 by the last one alone: no absolute value is needed.
    for place in range(width):
        shifted = b.emit(hlo.ShiftRightLogicalOp, exponent, b.full_like(exponent, place)) if place else exponent
        odd = b.compare(b.emit(hlo.AndOp, shifted, one), zero, "NE")
        result = b.select(odd, b.multiply(result, square), result)
        if place < width - 1:
            square = b.multiply(square, square)
    if text.startswith("ui"):
        return result
    unit = b.emit(hlo.OrOp, b.compare(base, one, "EQ"), b.compare(base, b.full_like(base, -1), "EQ"))
    negative = b.compare(exponent, zero, "LT")
    lost = b.emit(hlo.AndOp, negative, b.emit(hlo.NotOp, unit))
    return b.select(lost, zero, result)
