"""Pieces of StableHLO's pretty assembly that MLIR writes as custom directives; used in ops' `assembly_format`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, FunctionType, IntegerAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir.attributes import decode, sizes_attr, sizes_of
from gcomp.ir.enums import (
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    FftTypeAttr,
    PrecisionAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    WordAttr,
)
from gcomp.ir.types import Tensor, real_element, with_element


def parse_size(parser: Parser) -> Size:
    """Parse `3`, `-1` or `"2*batch"`."""
    if (text := parser.parse_optional_str_literal()) is None:
        return parser.parse_integer()
    try:
        return dims.parse(text)
    except dims.DimError as error:
        parser.raise_error(str(error))


def size_text(size: Size) -> str:
    """The text that `parse_size` reads."""
    return str(size) if isinstance(size, int) else f'"{size}"'


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Parse `%a, %b`, or nothing."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        or []
    )


def parse_bindings(parser: Parser) -> list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]]:
    """Parse `(%argument = %operand, ...)`."""

    def binding() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, binding)


def parse_sizes(parser: Parser) -> tuple[Size, ...]:
    """Parse `[2, "batch"]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_size(parser)))


@irdl_custom_directive
class Sizes(CustomDirective):
    """`[2, "batch"]`: ints, and dimension strings where symbolic."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.value.set(state, sizes_attr(parse_sizes(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        values = sizes_of(cast(Attribute, self.value.get(op)))
        printer.print_string(f"[{', '.join(map(size_text, values))}]")
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class VariadicOperands(CustomDirective):
    """`%a, %b,`: operands before a keyword, each with a comma."""

    operands: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        operands: list[UnresolvedOperand] = []
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            parser.parse_punctuation(",")
        if not operands:
            parser.parse_optional_punctuation(",")  # jaxlib prints a comma here, though it does not read it
        self.operands.set(state, operands)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        for operand in self.operands.get(op):
            state.print_whitespace(printer)
            printer.print_ssa_value(operand)
            printer.print_string(",")
            state.should_emit_space = True


@irdl_custom_directive
class SameOperandsAndResultType(CustomDirective):
    """One type when all operands and the result have it, else a function type."""

    operand_types: TypeDirective
    result_type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        types = parse_type_or_function(parser)
        start = 0
        for index, operand in enumerate(state.operands):
            stop = start + (len(operand) if isinstance(operand, Sequence) else 1)
            given = types.inputs.data[start:stop] if isinstance(types, FunctionType) else (types,) * (stop - start)
            state.operand_types[index] = given
            start = stop
        self.result_type.set(state, types.outputs.data if isinstance(types, FunctionType) else (types,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        result = op.results[0].type
        if all(t == result for t in op.operand_types):
            printer.print_attribute(result)
        else:
            printer.print_function_type(op.operand_types, op.result_types)


def parse_type_or_function(parser: Parser) -> Attribute:
    """Parse a type, or a function type."""
    return parser.parse_optional_function_type() or parser.parse_type()


@irdl_custom_directive
class ComplexOpType(CustomDirective):
    """The result's type, when the operands have its real type; else a function type."""

    operand_types: TypeDirective
    result_type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        types = parse_type_or_function(parser)
        if isinstance(types, FunctionType):
            operands, result = types.inputs.data, types.outputs.data[0]
        else:
            real = with_element(types, real_element(cast(Tensor, types)))
            operands, result = (real, real), types
        for index, type in enumerate(operands):
            state.operand_types[index] = (type,)
        self.result_type.set(state, (result,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        result = cast(Tensor, op.results[0].type)
        if all(t == with_element(result, real_element(result)) for t in op.operand_types):
            printer.print_attribute(result)
        else:
            printer.print_function_type(op.operand_types, op.result_types)


@irdl_custom_directive
class SelectOpType(CustomDirective):
    """`pred type, result type` when both branches have the result's type; else a function type."""

    operand_types: TypeDirective
    result_type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        types = parse_type_or_function(parser)
        if isinstance(types, FunctionType):
            operands, result = types.inputs.data, types.outputs.data[0]
        else:
            parser.parse_punctuation(",")
            result = parser.parse_type()
            operands = (types, result, result)
        for index, type in enumerate(operands):
            state.operand_types[index] = (type,)
        self.result_type.set(state, (result,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        pred, on_true, on_false = op.operand_types
        result = op.results[0].type
        if on_true == on_false == result:
            printer.print_attribute(pred)
            printer.print_string(", ")
            printer.print_attribute(result)
        else:
            printer.print_function_type(op.operand_types, op.result_types)


_WORDS: dict[str, type[WordAttr]] = {
    "comparison_direction": ComparisonDirectionAttr,
    "fft_type": FftTypeAttr,
    "rng_algorithm": RngAlgorithmAttr,
    "rng_distribution": RngDistributionAttr,
}


@irdl_custom_directive
class EnumWord(CustomDirective):
    """`LT`, `RFFT`, ...: an enumeration, which the property's name tells."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        attribute = _WORDS[self.value.name]
        self.value.set(state, attribute(attribute.parse_word(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(decode(cast(Attribute, self.value.get(op))))
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class I64(CustomDirective):
    """`3`: an integer of 64 bits without its type."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.value.set(state, IntegerAttr(parser.parse_integer(), i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(str(decode(cast(Attribute, self.value.get(op)))))
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class OptionalLower(CustomDirective):
    """`, lower = true` unless false."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword("lower")
            parser.parse_punctuation("=")
            self.value.set(state, BoolAttr.from_bool(parser.parse_boolean()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        attr = self.value.get(op)
        if attr is not None and decode(attr):
            printer.print_string(", lower = true")
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class OptionalComparisonType(CustomDirective):
    """`, FLOAT` when the comparison type is given."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_punctuation(",") is not None:
            self.value.set(state, ComparisonTypeAttr(ComparisonTypeAttr.parse_word(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if (attr := self.value.get(op)) is not None:
            printer.print_string(f", {decode(attr)}")
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class SliceRanges(CustomDirective):
    """`[0:4, 1:"batch":2]`: start, limit and stride per dimension."""

    starts: AttributeVariable
    limits: AttributeVariable
    strides: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        def one() -> tuple[Size, Size, int]:
            start = parse_size(parser)
            parser.parse_punctuation(":")
            limit = parse_size(parser)
            stride = parser.parse_integer() if parser.parse_optional_punctuation(":") is not None else 1
            return start, limit, stride

        ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, one)
        self.starts.set(state, sizes_attr([r[0] for r in ranges]))
        self.limits.set(state, sizes_attr([r[1] for r in ranges]))
        self.strides.set(state, DenseArrayBase.from_list(i64, [r[2] for r in ranges]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        columns: Sequence[Any] = [
            sizes_of(cast(Attribute, v.get(op))) for v in (self.starts, self.limits, self.strides)
        ]
        texts = [
            f"{size_text(start)}:{size_text(limit)}" + (f":{stride}" if stride != 1 else "")
            for start, limit, stride in zip(*columns, strict=True)
        ]
        printer.print_string(f"[{', '.join(texts)}]")
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class PrecisionConfig(CustomDirective):
    """`, precision = [DEFAULT, HIGH]` when given."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_punctuation(",") is None:
            return
        parser.parse_keyword("precision")
        parser.parse_punctuation("=")
        values = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: PrecisionAttr(PrecisionAttr.parse_word(parser))
        )
        self.value.set(state, ArrayAttr(values))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if (attr := self.value.get(op)) is not None:
            printer.print_string(f", precision = [{', '.join(decode(attr))}]")
        state.should_emit_space, state.last_was_punctuation = True, False
