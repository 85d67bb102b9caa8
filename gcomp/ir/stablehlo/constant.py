"""Constants and iota."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.elements import ElementsAttr, ElementsParser
from gcomp.ir.op import GraphOp
from gcomp.ir.types import COMPLEX, FLOATS, INTEGERS, Tensor, element_of, rank_of


@irdl_op_definition
class ConstantOp(GraphOp):
    """A constant tensor; `dense<1.0>` of any size costs one element."""

    name = "stablehlo.constant"
    value_ = prop_def(ElementsAttr, prop_name="value")
    output = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @classmethod
    def dense(cls, value: Any, type: Tensor | None = None) -> ConstantOp:
        """The constant of an array, or of a scalar broadcast to `type`."""
        return cls.of(value=ElementsAttr.of(value, type))

    @property
    def elements_attr(self) -> ElementsAttr:
        """The data."""
        return cast(ElementsAttr, self.properties["value"])

    def infer(self) -> Sequence[Attribute]:
        return (self.elements_attr.type,)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        value = ElementsParser.within(parser).parse_attribute()
        if not isinstance(value, ElementsAttr):
            parser.raise_error("stablehlo.constant takes dense<...>")
        return cls.create(properties={"value": value}, attributes=attributes, result_types=(value.type,))

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.elements_attr)


@irdl_op_definition
class IotaOp(GraphOp):
    """Each element is its own index along `iota_dimension`; the type is declared."""

    name = "stablehlo.iota"
    INFERS: ClassVar = False
    iota_dimension = prop_def(IntegerAttr)
    output = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> IotaOp:
        parser.parse_keyword("dim")
        parser.parse_punctuation("=")
        dimension = parser.parse_integer()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls.of(types=(parser.parse_type(),), iota_dimension=dimension)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" dim = {self.value('iota_dimension')}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.output.type)

    def check(self) -> None:
        if not 0 <= self.value("iota_dimension") < rank_of(self.output):
            self.fail("C1", "iota_dimension is not a dimension of the result")
        if element_of(self.output) not in INTEGERS | FLOATS | COMPLEX:
            self.fail("I1", "the result's elements are not numbers")
