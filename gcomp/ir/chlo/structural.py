"""Ops that are not elementwise: constants, top_k, ragged_dot, scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, ArrayAttr, BoolAttr, DenseArrayBase, FloatAttr, IntegerAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, RecursiveMemoryEffect

from gcomp.dims import Size
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.enums import ChloPrecisionAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.contraction import check_kind
from gcomp.ir.stablehlo.control import check_region, returned_types, same_types
from gcomp.ir.structures import RaggedDotDimensionNumbers, RaggedDotDimensions
from gcomp.ir.types import (
    INTEGERS,
    below,
    element_of,
    rank_of,
    same_shape,
    same_size,
    shape_of,
    tensor,
    with_element,
    with_shape,
)


@irdl_op_definition
class ConstantOp(GraphOp):
    """A constant tensor."""

    name = "chlo.constant"
    value_ = prop_def(ElementsAttr, prop_name="value")
    output = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        return (self.value_.type,)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        if not isinstance(value, ElementsAttr):
            parser.raise_error("chlo.constant takes dense<...>")
        return cls.create(properties={"value": value}, attributes=attributes, result_types=(value.type,))

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value_)


@irdl_op_definition
class ConstantLikeOp(GraphOp):
    """A constant number in the shape of the operand."""

    name = "chlo.constant_like"
    value_ = prop_def(IntegerAttr | FloatAttr, prop_name="value")
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        return (with_element(self.operand, self.value_.type),)


@irdl_op_definition
class TopKOp(GraphOp):
    """The `k` largest elements along the last dimension in descending order, and their positions."""

    name = "chlo.top_k"
    operand = operand_def(AnyTensorTypeConstr)
    k = prop_def(IntegerAttr)
    is_stable = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    values = result_def(AnyTensorTypeConstr)
    indices = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        shape, k = shape_of(self.operand), self.value("k")
        if not shape:
            self.fail("C1", "the operand has rank 0")
        if k < 0 or below(shape[-1], k):
            self.fail("C2", f"there are not {k} elements along a dimension of size {shape[-1]}")
        result = (*shape[:-1], k)
        return with_shape(self.operand, result), tensor(result, "i32")

    @classmethod
    def parse(cls, parser: Parser) -> TopKOp:
        with parser.in_parens():
            operand = parser.parse_unresolved_operand()
            parser.parse_punctuation(",")
            parser.parse_keyword("k")
            parser.parse_punctuation("=")
            k, is_stable = parser.parse_integer(), None
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("is_stable")
                parser.parse_punctuation("=")
                is_stable = parser.parse_boolean()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operand, parser.parse_type())
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        op = cls.of(value, types=types, k=k, is_stable=attributes.pop("is_stable", is_stable))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        printer.print_ssa_value(self.operand)
        printer.print_string(f", k = {self.value('k')})")
        # In this place, a parser that does not know the property yet reads it as an attribute of no meaning.
        unstable = {} if self.value("is_stable") else {"is_stable": self.is_stable}
        printer.print_op_attributes({**unstable, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> (")
        printer.print_list(self.result_types, printer.print_attribute)
        printer.print_string(")")


@irdl_op_definition
class RaggedDotOp(GraphOp):
    """Products of matrices in groups: consecutive runs of a dimension of lhs, of the sizes in `group_sizes`.

    Where that dimension is free in lhs, each of its rows meets the matrix of its group in rhs; where it is contracted,
    each group gives a product of its own; where it is a batching dimension, groups change nothing. The result's element
    type is declared, as of dot_general.
    """

    name = "chlo.ragged_dot"
    INFERS: ClassVar = False
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    group_sizes = operand_def(AnyTensorTypeConstr)
    ragged_dot_dimension_numbers = prop_def(RaggedDotDimensionNumbers)
    precision_config = opt_prop_def(ArrayAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @property
    def dimensions(self) -> RaggedDotDimensions:
        """The six dimension lists."""
        return self.ragged_dot_dimension_numbers.data

    @classmethod
    def encode_property(cls, name: str, value: Any) -> Attribute:
        if name == "precision_config" and not isinstance(value, Attribute):
            return ArrayAttr([ChloPrecisionAttr(word) for word in value])
        return super().encode_property(name, value)

    def check(self) -> None:
        d, lhs, rhs = self.dimensions, shape_of(self.lhs), shape_of(self.rhs)
        if element_of(self.group_sizes) not in INTEGERS:
            self.fail("I3", "group_sizes are not integers")
        for constraint, left, right in (
            ("C1", d.lhs_batching_dimensions, d.rhs_batching_dimensions),
            ("C2", d.lhs_contracting_dimensions, d.rhs_contracting_dimensions),
        ):
            if len(left) != len(right):
                self.fail(constraint, f"dimensions {list(left)} and {list(right)} differ in number")
            for i, j in zip(left, right, strict=True):
                if not (0 <= i < len(lhs) and 0 <= j < len(rhs)) or not same_size(lhs[i], rhs[j]):
                    self.fail(constraint, f"dimensions {i} and {j} are not there, or differ in size")
        if len(d.lhs_ragged_dimensions) != 1 or not 0 <= d.lhs_ragged_dimensions[0] < len(lhs):
            self.fail("C3", "there is not one ragged dimension of lhs")
        ragged, groups = d.lhs_ragged_dimensions[0], d.rhs_group_dimensions
        count = 0 if ragged in d.lhs_batching_dimensions + d.lhs_contracting_dimensions else 1
        if len(groups) != count or not all(0 <= g < len(rhs) for g in groups):
            self.fail("C4", f"rhs has group dimensions {list(groups)}, expected {count}")
        if set(groups) & {*d.rhs_batching_dimensions, *d.rhs_contracting_dimensions}:
            self.fail("C5", f"group dimension {groups[0]} is a batching or contracting dimension too")
        for constraint, used, rank in (
            ("C6", d.lhs_batching_dimensions + d.lhs_contracting_dimensions, len(lhs)),
            ("C6", d.rhs_batching_dimensions + d.rhs_contracting_dimensions, len(rhs)),
        ):
            if len(set(used)) != len(used):
                self.fail(constraint, f"{list(used)} are not distinct dimensions of rank {rank}")
        self._check_group_sizes(shape_of(self.group_sizes))
        if not same_shape(self.result_shape(), shape_of(self.result)):
            self.fail("C9", f"the result's shape is {shape_of(self.result)}, expected {self.result_shape()}")
        check_kind(self, "C10", (self.lhs, self.rhs))

    def _check_group_sizes(self, sizes: Sequence[Size]) -> None:
        d, lhs, rhs = self.dimensions, shape_of(self.lhs), shape_of(self.rhs)
        outer = [lhs[i] for i in self.outer_dimensions()]
        if not sizes or (len(sizes) > 1 and not same_shape(sizes[:-1], outer)):
            self.fail("C7", f"group_sizes has shape {list(sizes)}, expected [g] or {[*map(str, outer), 'g']}")
        if d.rhs_group_dimensions and not same_size(rhs[d.rhs_group_dimensions[0]], sizes[-1]):
            self.fail("C8", f"there are {sizes[-1]} groups, and {rhs[d.rhs_group_dimensions[0]]} of rhs")

    def outer_dimensions(self) -> list[int]:
        """The dimensions of lhs for each index of which groups may have sizes of their own."""
        d, (ragged,) = self.dimensions, self.dimensions.lhs_ragged_dimensions
        batch, contract = list(d.lhs_batching_dimensions), list(d.lhs_contracting_dimensions)
        if ragged in batch:
            return batch[: batch.index(ragged)]
        if ragged in contract:
            return batch + contract[: contract.index(ragged)]
        return batch + [i for i in range(ragged) if i not in batch and i not in contract]

    def result_shape(self) -> tuple[Size, ...]:
        """As of dot_general; groups come first where the ragged dimension is contracted."""
        d, lhs, rhs = self.dimensions, shape_of(self.lhs), shape_of(self.rhs)
        left = {*d.lhs_batching_dimensions, *d.lhs_contracting_dimensions}
        right = {*d.rhs_batching_dimensions, *d.rhs_contracting_dimensions, *d.rhs_group_dimensions}
        groups = shape_of(self.group_sizes)[-1:] if d.lhs_ragged_dimensions[0] in d.lhs_contracting_dimensions else ()
        batch = [lhs[i] for i in d.lhs_batching_dimensions]
        free = [[s for i, s in enumerate(shape) if i not in used] for shape, used in ((lhs, left), (rhs, right))]
        return (*groups, *batch, *free[0], *free[1])


def _slice_type(type: Attribute, dimension: int) -> Attribute:
    """The type without one dimension."""
    return with_shape(type, [s for i, s in enumerate(shape_of(type)) if i != dimension])


def _with_dimension(type: Attribute, dimension: int, size: Size) -> Attribute:
    """The type with one more dimension."""
    shape = shape_of(type)
    return with_shape(type, (*shape[:dimension], size, *shape[dimension:]))


@irdl_op_definition
class ScanOp(GraphOp):
    """Run the body on the slices of `inputs` along `dimension` in turn, from the last if `is_reverse`.

    The body takes one slice of each input and the carries, and returns one slice of each output and the carries; the
    outputs' slices lie where the inputs' did. `scan_dim_size` counts them where there are no inputs. `is_associative`
    is a promise that a backend may use, and changes no meaning.
    """

    name = "chlo.scan"
    inputs = var_operand_def(AnyTensorTypeConstr)
    inits = var_operand_def(AnyTensorTypeConstr)
    dimension = prop_def(IntegerAttr)
    scan_dim_size = opt_prop_def(IntegerAttr)
    is_reverse = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    is_associative = opt_prop_def(BoolAttr)
    body = region_def()
    outputs = var_result_def(AnyTensorTypeConstr)
    carries = var_result_def(AnyTensorTypeConstr)
    irdl_options = (
        ParsePropInAttrDict(),
        AttrSizedOperandSegments(as_property=True),
        AttrSizedResultSegments(as_property=True),
    )
    traits = traits_def(RecursiveMemoryEffect())

    def infer(self) -> Sequence[Attribute]:
        dimension, given = self.value("dimension"), self.scan_size()
        returned = returned_types(self.body) or ()
        slices = returned[: len(returned) - len(self.inits)]
        return (*(_with_dimension(type, dimension, given) for type in slices), *self.inits.types)

    def scan_size(self) -> Size:
        """How many slices there are."""
        if self.inputs:
            dimension: int = self.value("dimension")
            return shape_of(self.inputs[0])[dimension]
        size: int = self.value("scan_dim_size")
        return size

    def check(self) -> None:
        dimension: int = self.value("dimension")
        if any(not 0 <= dimension < rank_of(v) for v in (*self.inputs, *self.outputs)):
            self.fail("C1", f"dimension {dimension} is not a dimension of each input and output")
        given: int | None = self.value("scan_dim_size")
        if not self.inputs and (given is None or given < 0):
            self.fail("C2", "there is no input, and no scan_dim_size")
        sizes = [shape_of(v)[dimension] for v in self.inputs] + ([] if given is None else [given])
        if any(not same_size(size, sizes[0]) for size in sizes):
            self.fail("C2", f"inputs and scan_dim_size have sizes {sizes} along dimension {dimension}")
        carried = self.inits.types
        if not same_types(carried, self.carries.types):
            self.fail("C3", "the carries do not keep their types")
        taken = [*(_slice_type(v.type, dimension) for v in self.inputs), *carried]
        given_types = [*(_slice_type(v.type, dimension) for v in self.outputs), *carried]
        check_region(self, self.body, taken, given_types, "C4")

    @classmethod
    def encode_property(cls, name: str, value: Any) -> Attribute:
        if name in ("operandSegmentSizes", "resultSegmentSizes"):
            return DenseArrayBase.from_list(i32, list(value))
        return super().encode_property(name, value)

    @classmethod
    def parse(cls, parser: Parser) -> ScanOp:
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("inits")
        inits = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("dimension")
        parser.parse_punctuation("=")
        dimension = parser.parse_integer()
        parsed = parser.parse_optional_attr_dict_with_keyword()
        attributes: dict[str, Any] = {} if parsed is None else dict(parsed.data)
        body = parser.parse_region()
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        operands = parser.resolve_operands([*inputs, *inits], type.inputs.data, position)
        names = cls.get_irdl_definition().properties
        properties: dict[str, Any] = {k: attributes.pop(k) for k in list(attributes) if k in names}
        op = cls.of(
            *operands,
            types=type.outputs.data,
            regions=(body,),
            dimension=dimension,
            operandSegmentSizes=(len(inputs), len(inits)),
            resultSegmentSizes=(len(type.outputs.data) - len(inits), len(inits)),
            **properties,
        )
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        with printer.in_parens():
            printer.print_list(self.inputs, printer.print_ssa_value)
        printer.print_string(" inits (")
        printer.print_list(self.inits, printer.print_ssa_value)
        printer.print_string(f") dimension={self.value('dimension')}")
        names = ("scan_dim_size", "is_reverse", "is_associative")
        written = {k: self.properties[k] for k in names if k in self.properties}
        if not self.value("is_reverse"):
            written.pop("is_reverse", None)
        printer.print_op_attributes({**written, **self.attributes}, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)
