"""Changing element types: convert, bitcast_convert, reduce_precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from gcomp.dtypes import bit_width, is_complex
from gcomp.ir.assembly import SameOperandsAndResultType
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.types import COMPLEX, FLOATS, dtype_text, element_of, real_element, same_shape, shape_of


class ElementConversionOp(GraphOp):
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
class ConvertOp(ElementConversionOp):
    """The same numbers in another element type, which is declared."""

    name = "stablehlo.convert"


def _width(element: Attribute) -> int:
    text = dtype_text(element)
    return bit_width(text) if not is_complex(text) else 2 * bit_width(dtype_text(real_element_of(element)))


def real_element_of(element: Attribute) -> Attribute:
    """The real part's type of a complex element type."""
    from gcomp.ir.types import tensor

    return real_element(tensor((), element))


@irdl_op_definition
class BitcastConvertOp(GraphOp):
    """The same bits read as another element type; narrower elements add a trailing dimension, wider ones remove it."""

    name = "stablehlo.bitcast_convert"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        source, target = element_of(self.operand), element_of(self.result)
        if (source in COMPLEX) != (target in COMPLEX):
            self.fail("C2", "complex and real numbers do not cast bits to each other")
        before, after = shape_of(self.operand), shape_of(self.result)
        wide, narrow = _width(source), _width(target)
        if wide > narrow:
            before = (*before, wide // narrow)
        elif narrow > wide:
            after = (*after, narrow // wide)
        if not same_shape(before, after):
            self.fail("C1", f"{self.operand.type} does not have the bits of {self.result.type}")


@irdl_op_definition
class ReducePrecisionOp(GraphOp):
    """Round to a float of fewer exponent and mantissa bits, and back."""

    name = "stablehlo.reduce_precision"
    ELEMENTS: ClassVar = FLOATS
    operand = operand_def(AnyTensorTypeConstr)
    exponent_bits = prop_def(IntegerAttr)
    mantissa_bits = prop_def(IntegerAttr)
    output = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)

    def check(self) -> None:
        if self.value("exponent_bits") < 1:
            self.fail("C2", "there is no exponent bit")
        if self.value("mantissa_bits") < 0:
            self.fail("C3", "the number of mantissa bits is negative")

    @classmethod
    def parse(cls, parser: Parser) -> ReducePrecisionOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        parser.parse_keyword("format")
        parser.parse_punctuation("=")
        text = parser.parse_identifier()
        exponent, _, mantissa = text.removeprefix("e").partition("m")
        if not (exponent.isdigit() and mantissa.isdigit()) or len(text) > 9:
            parser.raise_error(f"expected a format such as e5m10, got {text!r}")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        value = parser.resolve_operand(operand, type)
        op = cls.of(value, exponent_bits=int(exponent), mantissa_bits=int(mantissa))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(f", format = e{self.value('exponent_bits')}m{self.value('mantissa_bits')}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.output.type)
