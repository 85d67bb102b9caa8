"""`gcomp.print`: writes a line when the program runs. It is never removed, doubled, or moved past another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import prop_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from gcomp.formats import parse_format
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.control import CaseOp, IfOp, WhileOp
from gcomp.ir.types import compatible, tensor

COUNT = tensor((), "i32")
"""The type of what threads prints: how many there were."""


@irdl_op_definition
class PrintOp(GraphOp):
    """Write a line: `gcomp.print "x: {shape} mean {mean}" %x : tensor<4xf32>`.

    Fields of the format are summaries of operands (`gcomp.formats`). With a result it is threaded: its
    first operand is how many prints came before, and its result one more, so that data alone keep prints in order.
    """

    name = "gcomp.print"
    INFERS: ClassVar = False
    values = var_operand_def(AnyTensorTypeConstr)
    format = prop_def(StringAttr)
    count = var_result_def(AnyTensorTypeConstr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @property
    def printed(self) -> Sequence[SSAValue]:
        """The operands that the format is about."""
        return self.operands[1:] if self.results else self.operands

    def check(self) -> None:
        parent = self.parent_op()
        if parent is not None and not isinstance(parent, FuncOp | IfOp | CaseOp | WhileOp):
            self.fail("C1", f"it does not stand in the body of {parent.name}, which may run in any order")
        if isinstance(parent, WhileOp) and self.parent_region() is parent.cond:
            self.fail("C1", "it does not stand in the condition of a loop")
        try:
            parse_format(self.value("format"), len(self.printed))
        except ValueError as error:
            self.fail("C2", str(error))
        if len(self.results) > 1 or not all(compatible(v.type, COUNT) for v in (*self.results, *self._before())):
            self.fail("C3", "what it continues and gives is not a count, of type tensor<i32>")

    def _before(self) -> Sequence[SSAValue]:
        if self.results and not self.operands:
            self.fail("C3", "it gives a count, and takes none")
        return self.operands[: len(self.results)]

    @classmethod
    def parse(cls, parser: Parser) -> PrintOp:
        text = parser.parse_str_literal()
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        position, types = parser.pos, list[Attribute]()
        results: list[Attribute] = []
        if operands:
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            if parser.parse_optional_punctuation("->"):
                results = [parser.parse_type()]
        resolved = parser.resolve_operands(operands or [], types, position)
        op = cls.of(*resolved, types=results, format=StringAttr(text))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(cast(StringAttr, self.properties["format"]).data)
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        if self.operands:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)
        if self.results:
            printer.print_string(" -> ")
            printer.print_attribute(self.results[0].type)
