"""The `gcomp` dialect of the graph level: what StableHLO cannot say."""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, StringAttr, SymbolRefAttr
from xdsl.ir import Dialect
from xdsl.irdl import prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.host import HostOp
from gcomp.ir.op import GraphOp
from gcomp.ir.printing import PrintOp
from gcomp.ir.types import INTEGERS, Tensor, element_of, rank_of, tensor
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp


@irdl_op_definition
class WeightOp(GraphOp):
    """Read a weight of the program: `gcomp.weight @name : tensor<...>`. The data lives outside the IR."""

    name = "gcomp.weight"
    INFERS: ClassVar = False
    weight = prop_def(SymbolRefAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @classmethod
    def read(cls, name: str, type: Tensor) -> WeightOp:
        """Read the weight `name`, of the tensor type `type`."""
        return cls.of(types=(type,), weight=SymbolRefAttr(name))

    @property
    def symbol(self) -> str:
        """The weight's name in the program's weight table."""
        return cast(SymbolRefAttr, self.properties["weight"]).root_reference.data

    @classmethod
    def parse(cls, parser: Parser) -> WeightOp:
        name = parser.parse_symbol_name()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls.read(name.data, cast(Tensor, parser.parse_type()))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.symbol)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class DimOp(GraphOp):
    """The value of a symbolic dimension as a rank 0 tensor: `gcomp.dim "2*batch" : tensor<i64>`."""

    name = "gcomp.dim"
    INFERS: ClassVar = False
    size = prop_def(StringAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @classmethod
    def read(cls, size: Size, element: str = "i64") -> DimOp:
        """The value of `size` in an integer element type."""
        return cls.of(types=(tensor((), element),), size=StringAttr(str(size)))

    @property
    def formula(self) -> Size:
        """The dimension's formula."""
        return dims.parse(self.value("size"))

    def check(self) -> None:
        try:
            canonical = str(dims.parse(self.value("size")))
        except dims.DimError as error:
            self.fail("C1", str(error))
        if canonical != self.value("size"):
            self.fail("C1", f"dimension {self.value('size')!r} is not canonical, write {canonical!r}")
        if rank_of(self.result) or element_of(self.result) not in INTEGERS:
            self.fail("C2", f"the result {self.result.type} is not a scalar of integer type")

    @classmethod
    def parse(cls, parser: Parser) -> DimOp:
        text = parser.parse_str_literal()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls.of(types=(parser.parse_type(),), size=StringAttr(text))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.value("size"))
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


GCOMP = Dialect("gcomp", [WeightOp, DimOp, HostOp, PrintOp, ViewAsRealOp, ViewAsComplexOp], [])
