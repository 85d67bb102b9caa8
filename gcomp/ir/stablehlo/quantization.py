"""Quantization. The quantized element type is declared, so that such programs can be read; nothing computes with it."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import Pure

from gcomp.ir.assembly import SameOperandsAndResultType
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.types import FLOATS, element_of, same_shape, shape_of


class QuantizationOp(GraphOp):
    """One operand and a result of its shape, whose element type is declared."""

    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (SameOperandsAndResultType,)
    assembly_format = "$operand attr-dict `:` custom<SameOperandsAndResultType>(type($operand), type($result))"

    def check(self) -> None:
        if not same_shape(shape_of(self.operand), shape_of(self.result)):
            self.fail("C1", f"{self.operand.type} and {self.result.type} have different shapes")


@irdl_op_definition
class UniformQuantizeOp(QuantizationOp):
    """Floats, or numbers quantized otherwise, as quantized numbers."""

    name = "stablehlo.uniform_quantize"


@irdl_op_definition
class UniformDequantizeOp(QuantizationOp):
    """Quantized numbers as floats."""

    name = "stablehlo.uniform_dequantize"

    def check(self) -> None:
        super().check()
        if element_of(self.result) not in FLOATS:
            self.fail("C2", f"the result {self.result.type} does not hold floats")
