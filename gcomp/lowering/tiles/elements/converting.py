"""Conversions: where quantization has clamped a number, no conversion asks again whether the type holds it."""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from gcomp.analysis.clamping import is_integral, match_quantized
from gcomp.analysis.indexing.maps import IndexingMap
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles.elements.elementwise import elementwise
from gcomp.lowering.tiles.elements.table import Elements, elements_of


@elements_of(hlo.ConvertOp)
def convert(elements: Elements, op: hlo.ConvertOp, result: int, access: IndexingMap) -> SSAValue:
    """The same number in another type."""
    b, to = elements.b, dtype_text(op.result.type)
    read = elements.reads(op, result, 0, access)
    if (found := match_quantized(op.result)) is not None:
        return b.cast(_clamped(elements, found, read), to)
    quantized = match_quantized(op.operand) if to == "f32" else None
    if quantized is not None and is_integral(quantized[0]) and op.operand not in elements.buffers:
        # The integer is the number that it was converted from.
        assert isinstance(op.operand, OpResult)
        inner = elements.reads(op.operand.op, 0, 0, read)
        number = _clamped(elements, quantized, inner)
        return number if quantized[1] >= 0 else b.apply("add", number, b.constant(0.0, "f32"))
    return elementwise(elements, op, result, access)


def _clamped(elements: Elements, found: tuple[SSAValue, float, float], access: IndexingMap) -> SSAValue:
    """A number within its limits; the lower one for NaN, and for a zero of either sign where that is the limit."""
    b, (x, low, high) = elements.b, found
    least, greatest, number = b.constant(low, "f32"), b.constant(high, "f32"), elements(x, access)
    number = b.apply("select", b.apply("gt", number, least), number, least)
    return b.apply("select", b.apply("lt", number, greatest), number, greatest)
