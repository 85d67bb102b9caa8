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

from xdsl.ir import OpResult, SSAValue

from gcomp.analysis.clamping import is_integral, match_clamp
from gcomp.analysis.quantized_values import LIMITS, source_integer
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text
from gcomp.passes.base import Pass, PassContext
from gcomp.passes.rewriting import Pattern, apply_rewrites


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
        if dtype_text(source.type) != "f32" or (found := match_clamp(source)) is None:
            return None
        x, low, high = found
        least, greatest = LIMITS[dtype_text(quantized.type)]
        held = least <= low <= high <= greatest and low == round(low) and high == round(high)
        return [source] if held and is_integral(x) else None


@dataclass(frozen=True)
class QuantizedValuesInF32(Pass):
    """Keep quantized values in f32 where they are read as f32."""

    name: ClassVar[str] = "quantized-values-in-f32"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program: Program, context: PassContext) -> bool:
        return apply_rewrites(program, (KeptQuantizedValues(),), context)
