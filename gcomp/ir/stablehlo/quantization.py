"""Quantization. The quantized element type is declared, so that such programs can be read; nothing computes with it."""

from __future__ import annotations

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.stablehlo.conversion import ElementConversionOp
from gcomp.ir.types import FLOATS, element_of


@irdl_op_definition
class UniformQuantizeOp(ElementConversionOp):
    """Floats, or numbers quantized otherwise, as quantized numbers."""

    name = "stablehlo.uniform_quantize"


@irdl_op_definition
class UniformDequantizeOp(ElementConversionOp):
    """Quantized numbers as floats."""

    name = "stablehlo.uniform_dequantize"

    def check(self) -> None:
        super().check()
        if element_of(self.result) not in FLOATS:
            self.fail("C2", f"the result {self.result.type} does not hold floats")
