"""The decorator of op classes: xDSL's, but assembly formats are read when the first op is parsed or printed.

To read the formats of all ops takes as long as half of what else they are defined by, and most programs need few.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, OpDef
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.irdl.operations import get_accessors_from_op_def
from xdsl.parser import Parser
from xdsl.printer import Printer

T = TypeVar("T", bound=IRDLOperation)


def irdl_op_definition(cls: type[T]) -> type[T]:
    """Define an op class, as `xdsl.irdl.irdl_op_definition` does."""
    definition = OpDef.from_pyrdl(cls)
    text, definition.assembly_format = definition.assembly_format, None
    found = get_accessors_from_op_def(definition, getattr(cls, "verify_", None))
    definition.assembly_format = text
    if text is not None:
        found |= _with_format(text, definition)
    for name, value in found.items():
        setattr(cls, name, value)
    return cls


def _with_format(text: str, definition: OpDef) -> dict[str, Any]:
    @cache
    def format() -> FormatProgram:
        return FormatProgram.from_str(text, definition)

    @classmethod
    def parse(cls: type[IRDLOperation], parser: Parser) -> Operation:
        return format().parse(parser, cls)

    def print(self: IRDLOperation, printer: Printer) -> None:
        format().print(printer, self)

    return {"parse": parse, "print": print}


def derives(kind: type, *bases: type) -> bool:
    """Whether a class derives from one of these. Python asks an abstract class for all classes below it instead."""
    return not set(kind.__mro__).isdisjoint(bases)


__all__ = ["derives", "irdl_op_definition"]
