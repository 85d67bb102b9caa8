"""Control flow, and the values that are not tensors: tokens and tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, IntegerAttr, TupleType
from xdsl.ir import (
    Attribute,
    Block,
    ParametrizedAttribute,
    Region,
    TypeAttribute,
)
from xdsl.irdl import (
    BaseAttr,
    irdl_attr_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.irdl.operations import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from gcomp.dtypes import bit_width
from gcomp.ir.assembly import SameOperandsAndResultType, parse_bindings, parse_operands
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.types import (
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    compatible,
    dtype_text,
    element_of,
    is_tensor,
    rank_of,
    tensor,
)


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """A value without data that orders side effects."""

    name = "stablehlo.token"


TOKEN = TokenType()
ANY_VALUE = AnyTensorTypeConstr | BaseAttr(TokenType) | BaseAttr(TupleType)
"""What control flow passes around: the specification's values."""


def entry_block(op: GraphOp, region: Region, constraint: str) -> Block:
    """The only block of a region that ends in a return. Refuses other regions."""
    block = region.blocks.first
    if block is None or region.blocks.last is not block or not isinstance(block.last_op, ReturnOp):
        op.fail(constraint, "a region is not a single block that ends in stablehlo.return")
    return block


def returned_types(region: Region) -> Sequence[Attribute] | None:
    """The types that a region returns, or None while its terminator is missing."""
    block = region.blocks.first
    last = None if block is None else block.last_op
    return None if last is None else last.operand_types


def check_region(
    op: GraphOp, region: Region, arguments: Sequence[Attribute], results: Sequence[Attribute], constraint: str
) -> None:
    """Refuse a region whose arguments or returned values do not have the given types."""
    block = entry_block(op, region, constraint)
    returned = cast(ReturnOp, block.last_op).operand_types
    for what, actual, expected in (("takes", block.arg_types, arguments), ("returns", returned, results)):
        if not same_types(actual, expected):
            op.fail(constraint, f"a region {what} {_list(actual)}, expected {_list(expected)}")


def check_fold(op: GraphOp, region: Region, inputs: Sequence[Attribute], constraint: str) -> None:
    """Refuse a body unless it folds two scalars for each input into one, of an element type at least as wide."""
    returned = cast(ReturnOp, entry_block(op, region, constraint).last_op).operand_types
    if len(returned) != len(inputs):
        op.fail(constraint, f"a region returns {len(returned)} values, expected {len(inputs)}")
    for result, value in zip(returned, inputs, strict=True):
        if not is_tensor(result) or rank_of(result) or not promotable(element_of(value), element_of(result)):
            op.fail(constraint, f"a region returns {result} for an operand of type {value}")
    check_region(op, region, (*returned, *returned), returned, constraint)


def promotable(narrow: Attribute, wide: Attribute) -> bool:
    """Whether a fold over elements of one type may compute in another: the same kind of number, and as wide."""
    if narrow == wide:
        return True
    same = any(narrow in kind and wide in kind for kind in (INTEGERS, FLOATS, COMPLEX))
    return same and bit_width(dtype_text(narrow)) <= bit_width(dtype_text(wide))


def same_types(a: Sequence[Attribute], b: Sequence[Attribute]) -> bool:
    """Whether two lists of types are the same up to unknown dimensions."""
    return len(a) == len(b) and all(compatible(x, y) for x, y in zip(a, b, strict=True))


def _list(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


@irdl_op_definition
class ReturnOp(GraphOp):
    """End a region with its results."""

    name = "stablehlo.return"
    values = var_operand_def(ANY_VALUE)
    traits = traits_def(Pure(), IsTerminator())
    assembly_format = "$values attr-dict (`:` type($values)^)?"


@irdl_op_definition
class IfOp(GraphOp):
    """The results of `true_branch` where `pred` holds, else those of `false_branch`."""

    name = "stablehlo.if"
    ELEMENTS: ClassVar = frozenset({BOOL})
    pred = operand_def(AnyTensorTypeConstr)
    true_branch = region_def()
    false_branch = region_def()
    result = var_result_def(ANY_VALUE)
    traits = traits_def(RecursiveMemoryEffect())

    def infer(self) -> Sequence[Attribute]:
        return _branch_types(self, "C2")

    def check(self) -> None:
        if not compatible(self.pred.type, tensor((), BOOL)):
            self.fail("I1", f"the predicate has type {self.pred.type}, expected tensor<i1>")
        _check_branches(self, "C1", "C2")


@irdl_op_definition
class CaseOp(GraphOp):
    """The results of the branch that `index` selects; the last one where it is out of bounds."""

    name = "stablehlo.case"
    index = operand_def(AnyTensorTypeConstr)
    branches = var_region_def()
    result = var_result_def(ANY_VALUE)
    traits = traits_def(RecursiveMemoryEffect())

    def infer(self) -> Sequence[Attribute]:
        if not self.branches:
            self.fail("C1", "there are no branches")
        return _branch_types(self, "C3")

    def check(self) -> None:
        if not compatible(self.index.type, tensor((), "i32")):
            self.fail("I1", f"the index has type {self.index.type}, expected tensor<i32>")
        _check_branches(self, "C2", "C3")


def _branch_types(op: GraphOp, constraint: str) -> Sequence[Attribute]:
    types = returned_types(op.regions[0])
    if types is None:
        op.fail(constraint, "a branch does not return")
    return types


def _check_branches(op: GraphOp, inputs: str, outputs: str) -> None:
    for branch in op.regions:
        if entry_block(op, branch, outputs).args:
            op.fail(inputs, "a branch takes arguments")
        check_region(op, branch, (), op.result_types, outputs)


@irdl_op_definition
class WhileOp(GraphOp):
    """Apply `body` to the values as long as `cond` holds for them."""

    name = "stablehlo.while"
    operand = var_operand_def(ANY_VALUE)
    cond = region_def()
    body = region_def()
    result = var_result_def(ANY_VALUE)
    traits = traits_def(RecursiveMemoryEffect())

    def infer(self) -> Sequence[Attribute]:
        return self.operand_types

    def check(self) -> None:
        check_region(self, self.cond, self.operand_types, (tensor((), BOOL),), "C1")
        check_region(self, self.body, self.operand_types, self.operand_types, "C2")

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        bindings = parse_bindings(parser)
        types: list[Attribute] = []
        position = parser.pos
        if bindings:
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        operands = parser.resolve_operands([b[1] for b in bindings], types, position)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        arguments = [b[0].resolve(t) for b, t in zip(bindings, types, strict=True)]
        parser.parse_keyword("cond")
        cond = parser.parse_region(arguments)
        parser.parse_keyword("do")
        body = parser.parse_region(arguments)
        op = cls.of(*operands, types=types, regions=(cond, body))
        op.attributes.update({} if attributes is None else attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        cond, body = self.cond.block.args, self.body.block.args
        # One name in the text stands for the argument of both regions; the printer knows no such sharing.
        names: dict[Any, str] = vars(printer)["_ssa_values"]
        printer.print_string("(")
        for i, (other, argument, operand) in enumerate(zip(cond, body, self.operands, strict=True)):
            printer.print_string(", " if i else "")
            argument.name_hint = argument.name_hint or "iterArg"
            names[other] = printer.print_ssa_value(argument)
            printer.print_string(" = ")
            printer.print_ssa_value(operand)
        printer.print_string(")")
        if self.operands:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string("\ncond ")
        printer.print_region(self.cond, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class OptimizationBarrierOp(GraphOp):
    """The operands unchanged, all computed before any result is used."""

    name = "stablehlo.optimization_barrier"
    operand = var_operand_def(ANY_VALUE)
    result = var_result_def(ANY_VALUE)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        return self.operand_types

    @classmethod
    def parse(cls, parser: Parser) -> OptimizationBarrierOp:
        attributes = parser.parse_optional_attr_dict()
        operands = parse_operands(parser)
        types: list[Attribute] = []
        position = parser.pos
        if operands:
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        else:
            parser.parse_punctuation("(")
            parser.parse_punctuation(")")
        return cls.create(
            operands=parser.resolve_operands(operands, types, position),
            result_types=types,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" " if self.operands else "()")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : " if self.operands else "")
        printer.print_list(self.operand_types, printer.print_attribute)


@irdl_op_definition
class AfterAllOp(GraphOp):
    """A token that comes after all of `inputs`."""

    name = "stablehlo.after_all"
    inputs = var_operand_def(TokenType)
    result = result_def(TokenType)
    traits = traits_def(Pure())
    custom_directives = (SameOperandsAndResultType,)
    assembly_format = "$inputs attr-dict `:` custom<SameOperandsAndResultType>(type($inputs), type($result))"

    def infer(self) -> Sequence[Attribute]:
        return (TOKEN,)


@irdl_op_definition
class CreateTokenOp(GraphOp):
    """A new token; `after_all` without inputs."""

    name = "stablehlo.create_token"
    output = result_def(TokenType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($output)"

    def infer(self) -> Sequence[Attribute]:
        return (TOKEN,)


@irdl_custom_directive
class TupleOpType(CustomDirective):
    """The tuple type, whose element types are the operands'."""

    values: TypeDirective
    tuple: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        type = parser.parse_type()
        if not isinstance(type, TupleType):
            parser.raise_error("expected a tuple type")
        self.values.set(state, type.types.data)
        self.tuple.set(state, (type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.tuple.print(printer, state, op)


@irdl_op_definition
class TupleOp(GraphOp):
    """The values as one tuple."""

    name = "stablehlo.tuple"
    val = var_operand_def(ANY_VALUE)
    result = result_def(TupleType)
    traits = traits_def(Pure())
    custom_directives = (TupleOpType,)
    assembly_format = "$val attr-dict `:` custom<TupleOpType>(type($val), type($result))"

    def infer(self) -> Sequence[Attribute]:
        return (TupleType(cast("tuple[TypeAttribute, ...]", self.operand_types)),)


@irdl_op_definition
class GetTupleElementOp(GraphOp):
    """One element of a tuple."""

    name = "stablehlo.get_tuple_element"
    operand = operand_def(TupleType)
    index = prop_def(IntegerAttr)
    result = result_def(ANY_VALUE)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        elements = cast(TupleType, self.operand.type).types.data
        index: int = self.value("index")
        if not 0 <= index < len(elements):
            self.fail("C1", f"a tuple of {len(elements)} has no element {index}")
        return (elements[index],)

    @classmethod
    def parse(cls, parser: Parser) -> GetTupleElementOp:
        operand = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            index = parser.parse_integer()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_function_type()
        value = parser.resolve_operand(operand, type.inputs.data[0])
        op = cls.of(value, types=type.outputs.data, index=index)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(f"[{self.value('index')}]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)
