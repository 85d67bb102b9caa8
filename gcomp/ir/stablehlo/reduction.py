"""Reductions: reduce, reduce_window, select_and_scatter, map; their bodies are regions on rank 0 tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import AnyTensorTypeConstr, DenseArrayBase
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    SameVariadicOperandSize,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.contraction import window_size
from gcomp.ir.stablehlo.control import ReturnOp, check_fold, check_region, returned_types
from gcomp.ir.stablehlo.elementwise import AddOp, AndOp, MaximumOp, MinimumOp, MultiplyOp, OrOp, XorOp
from gcomp.ir.types import (
    BOOL,
    element_of,
    rank_of,
    same_shape,
    shape_of,
    tensor,
    with_element,
)

COMMUTATIVE: dict[str, type[GraphOp]] = {
    op.name: op for op in (AddOp, AndOp, MaximumOp, MinimumOp, MultiplyOp, OrOp, XorOp)
}
"""The ops that `reduce ... applies` may name."""


def scalar_region(op: type[GraphOp], element: Attribute) -> Region:
    """The region that applies a binary op to two rank 0 tensors and returns the result."""
    scalar = tensor((), element)
    block = Block(arg_types=(scalar, scalar))
    applied = op.of(*block.args)
    block.add_ops((applied, ReturnOp.of(applied.results[0])))
    return Region(block)


def applied_op(region: Region) -> type[GraphOp] | None:
    """The binary op that a region applies to its two arguments in order, if that is all it does."""
    block = region.blocks.first
    if block is None or len(block.args) != 2 or region.blocks.last is not block:
        return None
    first, last = block.first_op, block.last_op
    if first is None or last is None or first.next_op is not last or first.name not in COMMUTATIVE:
        return None
    if tuple(first.operands) != tuple(block.args) or tuple(last.operands) != tuple(first.results):
        return None
    return None if first.attributes else COMMUTATIVE[first.name]


@irdl_op_definition
class ReduceOp(GraphOp):
    """Fold `inputs` along `dimensions` with the body, starting from `init_values`."""

    name = "stablehlo.reduce"
    inputs = var_operand_def(AnyTensorTypeConstr)
    init_values = var_operand_def(AnyTensorTypeConstr)
    dimensions = prop_def(DenseArrayBase)
    body = region_def()
    result = var_result_def(AnyTensorTypeConstr)
    irdl_options = (ParsePropInAttrDict(), SameVariadicOperandSize())
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def apply(cls, op: type[GraphOp], x: SSAValue, init: SSAValue, dimensions: Sequence[int]) -> ReduceOp:
        """Fold one operand with a binary op."""
        return cls.of(x, init, dimensions=dimensions, regions=(scalar_region(op, element_of(x)),))

    def infer(self) -> Sequence[Attribute]:
        dimensions = self.value("dimensions")
        if not self.inputs or len(self.inputs) != len(self.init_values):
            self.fail("C3", "needs as many init values as inputs, and at least one")
        rank = rank_of(self.inputs[0])
        if len(set(dimensions)) != len(dimensions) or not all(0 <= d < rank for d in dimensions):
            self.fail("C4", f"{list(dimensions)} are not distinct dimensions of rank {rank}")
        kept = [s for i, s in enumerate(shape_of(self.inputs[0])) if i not in dimensions]
        return [tensor(kept, element_of(o)) for o in returned_types(self.body) or self.inputs.types]

    def applied(self) -> type[GraphOp] | None:
        """The binary op that the body applies, if that is all it does and in the input's element type."""
        op = applied_op(self.body)
        scalar = tensor((), element_of(self.inputs[0]))
        return op if all(t == scalar for t in self.body.block.arg_types) else None

    def check(self) -> None:
        for value in self.inputs:
            if not same_shape(shape_of(value), shape_of(self.inputs[0])):
                self.fail("C1", "inputs have different shapes")
        for value, init in zip(self.inputs, self.init_values, strict=True):
            if element_of(value) != element_of(init) or rank_of(init):
                self.fail("C2", f"init value {init.type} is not a scalar of {value.type}")
        check_fold(self, self.body, self.inputs.types, "C6")

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        pairs = [_init_pair(parser)]
        while parser.parse_optional_punctuation(",") is not None:
            pairs.append(_init_pair(parser))
        applied: type[GraphOp] | None = None
        if parser.parse_optional_keyword("applies") is not None:
            name = parser.parse_identifier()
            if (applied := COMMUTATIVE.get(name)) is None:
                parser.raise_error(f"reduce does not apply {name}")
        parser.parse_keyword("across")
        parser.parse_keyword("dimensions")
        parser.parse_punctuation("=")
        dimensions = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        unresolved = [p[0] for p in pairs] + [p[1] for p in pairs]
        operands = parser.resolve_operands(unresolved, type.inputs.data, position)
        if applied is not None:
            region = scalar_region(applied, element_of(operands[0]))
        else:
            region = _parse_reducer(parser, len(pairs))
        op = cls.of(*operands, types=type.outputs.data, dimensions=dimensions, regions=(region,))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        for i, (value, init) in enumerate(zip(self.inputs, self.init_values, strict=True)):
            printer.print_string(", (" if i else "(")
            printer.print_ssa_value(value)
            printer.print_string(" init: ")
            printer.print_ssa_value(init)
            printer.print_string(")")
        applied = self.applied()
        if applied is not None:
            printer.print_string(f" applies {applied.name}")
        printer.print_string(f" across dimensions = {list(self.value('dimensions'))}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)
        if applied is None:
            _print_reducer(printer, self.body)


def _init_pair(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand]:
    parser.parse_punctuation("(")
    value = parser.parse_unresolved_operand()
    parser.parse_keyword("init")
    parser.parse_punctuation(":")
    init = parser.parse_unresolved_operand()
    parser.parse_punctuation(")")
    return value, init


def _parse_reducer(parser: Parser, count: int) -> Region:
    parser.parse_keyword("reducer")
    pairs: list[Sequence[Parser.Argument]] = []
    for _ in range(count):
        pairs.append(parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _argument(parser)))
        if len(pairs[-1]) != 2:
            parser.raise_error("a reducer takes two arguments for each input")
    return parser.parse_region([p[0] for p in pairs] + [p[1] for p in pairs])


def _argument(parser: Parser) -> Parser.Argument:
    """An argument; its location is that of the op."""
    argument = parser.parse_argument()
    parser.parse_optional_location()
    return argument


def _print_reducer(printer: Printer, body: Region) -> None:
    args = body.block.args
    count = len(args) // 2
    printer.print_string("\n  reducer")
    for left, right in zip(args[:count], args[count:], strict=True):
        printer.print_string("(")
        printer.print_block_argument(left)
        printer.print_string(", ")
        printer.print_block_argument(right)
        printer.print_string(") ")
    printer.print_region(body, print_entry_block_args=False)


@irdl_op_definition
class ReduceWindowOp(GraphOp):
    """Fold each window of `inputs` with the body, starting from `init_values`."""

    name = "stablehlo.reduce_window"
    inputs = var_operand_def(AnyTensorTypeConstr)
    init_values = var_operand_def(AnyTensorTypeConstr)
    window_dimensions = prop_def(DenseArrayBase)
    window_strides = opt_prop_def(DenseArrayBase)
    base_dilations = opt_prop_def(DenseArrayBase)
    window_dilations = opt_prop_def(DenseArrayBase)
    padding = opt_prop_def(ElementsAttr)
    body = region_def()
    result = var_result_def(AnyTensorTypeConstr)
    irdl_options = (ParsePropInAttrDict(), SameVariadicOperandSize())
    traits = traits_def(RecursiveMemoryEffect())

    def window(self) -> dict[str, tuple[Any, ...]]:
        """All window properties per dimension, defaults filled in."""
        n = rank_of(self.inputs[0])
        names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
        return {m: ((0, 0) if m == "padding" else 1,) * n if (v := self.value(m)) is None else v for m in names}

    def infer(self) -> Sequence[Attribute]:
        if not self.inputs or len(self.inputs) != len(self.init_values):
            self.fail("C1", "needs as many init values as inputs, and at least one")
        w, shape = self.window(), shape_of(self.inputs[0])
        for constraint, name in (("C4", "window_dimensions"), ("C6", "window_strides"), ("C8", "base_dilations"),
                                 ("C10", "window_dilations"), ("C12", "padding")):  # fmt: skip
            if len(w[name]) != len(shape) or (name == "padding" and any(len(pair) != 2 for pair in w[name])):
                self.fail(constraint, f"{name} needs one value for each of {len(shape)} dimensions")
            if name != "padding" and any(v <= 0 for v in w[name]):
                self.fail(f"C{int(constraint[1:]) + 1}", f"{name} is not positive")
        result = [
            window_size(size, w["window_dimensions"][i], w["window_strides"][i], w["padding"][i],
                        w["base_dilations"][i], w["window_dilations"][i])
            for i, size in enumerate(shape)
        ]  # fmt: skip
        return [tensor(result, element_of(o)) for o in returned_types(self.body) or self.inputs.types]

    def check(self) -> None:
        for value, init in zip(self.inputs, self.init_values, strict=True):
            if not same_shape(shape_of(value), shape_of(self.inputs[0])):
                self.fail("C2", "inputs have different shapes")
            if element_of(value) != element_of(init) or rank_of(init):
                self.fail("C3", f"init value {init.type} is not a scalar of {value.type}")
        check_fold(self, self.body, self.inputs.types, "C13")


@irdl_op_definition
class SelectAndScatterOp(GraphOp):
    """Select one element of each window of `operand`, and scatter `source` to where it was."""

    name = "stablehlo.select_and_scatter"
    operand = operand_def(AnyTensorTypeConstr)
    source = operand_def(AnyTensorTypeConstr)
    init_value = operand_def(AnyTensorTypeConstr)
    window_dimensions = opt_prop_def(DenseArrayBase)
    window_strides = opt_prop_def(DenseArrayBase)
    padding = opt_prop_def(ElementsAttr)
    select = region_def()
    scatter = region_def()
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(RecursiveMemoryEffect())

    def window(self) -> dict[str, tuple[Any, ...]]:
        """Window sizes, strides and padding per dimension, defaults filled in."""
        n = rank_of(self.operand)
        names = ("window_dimensions", "window_strides", "padding")
        return {m: ((0, 0) if m == "padding" else 1,) * n if (v := self.value(m)) is None else v for m in names}

    def infer(self) -> Sequence[Attribute]:
        element = next(iter(returned_types(self.scatter) or (self.operand.type,)))
        return (with_element(self.operand, element_of(element)),)

    def check(self) -> None:
        w, shape = self.window(), shape_of(self.operand)
        for constraint, name in (("C4", "window_dimensions"), ("C6", "window_strides"), ("C8", "padding")):
            if len(w[name]) != len(shape) or (name == "padding" and any(len(pair) != 2 for pair in w[name])):
                self.fail(constraint, f"{name} needs one value for each of {len(shape)} dimensions")
        for constraint, name in (("C5", "window_dimensions"), ("C7", "window_strides")):
            if any(v <= 0 for v in w[name]):
                self.fail(constraint, f"{name} is not positive")
        if element_of(self.source) != element_of(self.operand):
            self.fail("C1", "operand and source have different element types")
        if element_of(self.init_value) != element_of(self.operand) or rank_of(self.init_value):
            self.fail("C3", "the init value is not a scalar of the operand's element type")
        expected = [
            window_size(size, w["window_dimensions"][i], w["window_strides"][i], w["padding"][i], 1, 1)
            for i, size in enumerate(shape)
        ]
        if not same_shape(expected, shape_of(self.source)):
            self.fail("C2", f"the source's shape is {shape_of(self.source)}, expected {tuple(expected)}")
        scalar = tensor((), element_of(self.operand))
        check_region(self, self.select, (scalar, scalar), (tensor((), BOOL),), "C9")
        check_fold(self, self.scatter, (self.operand.type,), "C10")


@irdl_op_definition
class MapOp(GraphOp):
    """Apply the computation to the elements of `inputs` one by one."""

    name = "stablehlo.map"
    inputs = var_operand_def(AnyTensorTypeConstr)
    dimensions = prop_def(DenseArrayBase)
    computation = region_def()
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(RecursiveMemoryEffect())

    def infer(self) -> Sequence[Attribute]:
        if not self.inputs:
            self.fail("C2", "there are no inputs")
        element = next(iter(returned_types(self.computation) or self.inputs.types))
        return (tensor(shape_of(self.inputs[0]), element_of(element)),)

    def check(self) -> None:
        for value in self.inputs:
            if not same_shape(shape_of(value), shape_of(self.inputs[0])):
                self.fail("C1", "inputs have different shapes")
        if self.value("dimensions") != tuple(range(rank_of(self.inputs[0]))):
            self.fail("C3", "dimensions are not all dimensions in order")
        arguments = [tensor((), element_of(v)) for v in self.inputs]
        check_region(self, self.computation, arguments, (tensor((), element_of(self.result)),), "C4")
