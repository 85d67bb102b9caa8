"""Data movement: broadcast, concatenate, pad, reshape, reverse, slice, transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import AnyTensorTypeConstr, DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir.assembly import SameOperandsAndResultType, Sizes, SliceRanges
from gcomp.ir.attributes import sizes_of
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.types import (
    below,
    differ_always,
    element_of,
    rank_of,
    same_size,
    shape_of,
    with_shape,
)


def check_permutation(op: GraphOp, constraint: str, values: Sequence[int], rank: int) -> None:
    """Refuse `values` unless they are distinct dimensions of a tensor of `rank`."""
    if len(set(values)) != len(values) or not all(0 <= v < rank for v in values):
        op.fail(constraint, f"{list(values)} are not distinct dimensions of rank {rank}")


@irdl_op_definition
class BroadcastInDimOp(GraphOp):
    """Operand dimension `i` becomes result dimension `broadcast_dimensions[i]`, repeated where its size is 1."""

    name = "stablehlo.broadcast_in_dim"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    broadcast_dimensions = prop_def(DenseArrayBase)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (Sizes,)
    assembly_format = (
        "$operand `,` `dims` `=` custom<Sizes>($broadcast_dimensions) attr-dict `:` functional-type(operands, results)"
    )

    def check(self) -> None:
        dimensions: tuple[int, ...] = self.value("broadcast_dimensions")
        source, target = shape_of(self.operand), shape_of(self.result)
        if element_of(self.operand) != element_of(self.result):
            self.fail("C1", "operand and result have different element types")
        if len(dimensions) != len(source):
            self.fail("C2", f"{len(dimensions)} broadcast_dimensions for an operand of rank {len(source)}")
        check_permutation(self, "C4", dimensions, len(target))
        for size, dimension in zip(source, dimensions, strict=True):
            if size != 1 and differ_always(size, 1) and differ_always(size, target[dimension]):
                self.fail("C5", f"size {size} does not broadcast to {target[dimension]}")


@irdl_op_definition
class ConcatenateOp(GraphOp):
    """Operands one after another along `dimension`."""

    name = "stablehlo.concatenate"
    inputs = var_operand_def(AnyTensorTypeConstr)
    dimension = prop_def(IntegerAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        if not self.operands:
            self.fail("C3", "there are no operands")
        first, axis = self.operands[0], self.value("dimension")
        if not 0 <= axis < rank_of(first):
            self.fail("C4", f"dimension {axis} is not a dimension of rank {rank_of(first)}")
        total: Size = 0
        for operand in self.operands:
            shape = shape_of(operand)
            if element_of(operand) != element_of(first) or len(shape) != rank_of(first):
                self.fail("C1", f"operands have types {first.type} and {operand.type}")
            for i, (a, b) in enumerate(zip(shape, shape_of(first), strict=True)):
                if i != axis and not same_size(a, b):
                    self.fail("C2", f"operands have types {first.type} and {operand.type}")
            total = cast(Size, total + shape[axis])
        shape = list(shape_of(first))
        shape[axis] = total
        return (with_shape(first, shape),)

    @classmethod
    def parse(cls, parser: Parser) -> ConcatenateOp:
        operands: list[UnresolvedOperand] = []
        while parser.parse_optional_keyword("dim") is None:
            operands.append(parser.parse_unresolved_operand())
            parser.parse_punctuation(",")
        parser.parse_punctuation("=")
        dimension = parser.parse_integer()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type = parser.parse_function_type()
        values = parser.resolve_operands(operands, type.inputs.data, position)
        op = cls.of(*values, types=type.outputs.data, dimension=dimension)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        for operand in self.operands:
            printer.print_ssa_value(operand)
            printer.print_string(", ")
        printer.print_string(f"dim = {self.value('dimension')}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)


_FEW = 16
"""Elements at an edge whose number sizes decide: with as many or more, most of a result may be padding."""


@irdl_op_definition
class PadOp(GraphOp):
    """Put `padding_value` around and between the elements; negative edge padding removes elements."""

    name = "stablehlo.pad"
    operand = operand_def(AnyTensorTypeConstr)
    padding_value = operand_def(AnyTensorTypeConstr)
    edge_padding_low = prop_def(Attribute)
    edge_padding_high = prop_def(Attribute)
    interior_padding = prop_def(DenseArrayBase)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (Sizes,)
    assembly_format = (
        "$operand `,` $padding_value `,` `low` `=` custom<Sizes>($edge_padding_low) `,` `high` `=` "
        "custom<Sizes>($edge_padding_high) `,` `interior` `=` custom<Sizes>($interior_padding) attr-dict "
        "`:` functional-type(operands, results)"
    )

    @property
    def surrounds(self) -> bool:
        """Whether it keeps all elements side by side, and puts others around them: few, or none, where sizes decide."""
        edges = (*sizes_of(self.edge_padding_low), *sizes_of(self.edge_padding_high))
        return (
            not any(self.value("interior_padding"))
            and any(n != 0 for n in edges)
            and all(below(-1, n) and (isinstance(n, int) or below(n, _FEW)) for n in edges)
        )

    def infer(self) -> Sequence[Attribute]:
        shape = shape_of(self.operand)
        low, high = sizes_of(self.edge_padding_low), sizes_of(self.edge_padding_high)
        interior: tuple[int, ...] = self.value("interior_padding")
        if not len(low) == len(high) == len(interior) == len(shape):
            self.fail("C2", f"paddings need one size for each of {len(shape)} dimensions")
        if any(i < 0 for i in interior):
            self.fail("C3", "interior padding is negative")
        result: list[Size] = []
        for size, lo, hi, gap in zip(shape, low, high, interior, strict=True):
            inner = dims.dmax(size - 1, 0) * gap if gap else 0
            total = lo + size + inner + hi
            if isinstance(total, int) and total < 0:
                self.fail("C4", f"dimension of size {size} is padded to {total}")
            result.append(total)
        return (with_shape(self.operand, result),)

    def check(self) -> None:
        if rank_of(self.padding_value) != 0 or element_of(self.padding_value) != element_of(self.operand):
            self.fail("C1", "the padding value is not a rank 0 tensor of the operand's element type")


@irdl_op_definition
class ReshapeOp(GraphOp):
    """The same elements in row-major order with another shape, which is declared."""

    name = "stablehlo.reshape"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        if element_of(self.operand) != element_of(self.result):
            self.fail("C1", "operand and result have different element types")
        before, after = dims.product(shape_of(self.operand)), dims.product(shape_of(self.result))
        if differ_always(before, after):
            self.fail("C2", f"{before} elements do not fit {self.result.type}")


@irdl_op_definition
class ReverseOp(GraphOp):
    """Reverse the order of elements along `dimensions`."""

    name = "stablehlo.reverse"
    operand = operand_def(AnyTensorTypeConstr)
    dimensions = prop_def(DenseArrayBase)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (Sizes, SameOperandsAndResultType)
    assembly_format = (
        "$operand `,` `dims` `=` custom<Sizes>($dimensions) attr-dict "
        "`:` custom<SameOperandsAndResultType>(type($operand), type($result))"
    )

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)

    def check(self) -> None:
        check_permutation(self, "C2", self.value("dimensions"), rank_of(self.operand))


@irdl_op_definition
class SliceOp(GraphOp):
    """Elements from `start_indices` up to `limit_indices` by `strides`; limits may be symbolic."""

    name = "stablehlo.slice"
    operand = operand_def(AnyTensorTypeConstr)
    start_indices = prop_def(Attribute)
    limit_indices = prop_def(Attribute)
    strides = prop_def(DenseArrayBase)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (SliceRanges,)
    assembly_format = (
        "$operand custom<SliceRanges>($start_indices, $limit_indices, $strides) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Attribute]:
        shape = shape_of(self.operand)
        starts, limits = sizes_of(self.start_indices), sizes_of(self.limit_indices)
        strides: tuple[int, ...] = self.value("strides")
        if not len(starts) == len(limits) == len(strides) == len(shape):
            self.fail("C2", f"indices and strides need one value for each of {len(shape)} dimensions")
        result: list[Size] = []
        for size, start, limit, stride in zip(shape, starts, limits, strides, strict=True):
            if below(start, 0) or below(limit, start) or below(size, limit):
                self.fail("C3", f"slice {start}:{limit} does not lie within a dimension of size {size}")
            if stride <= 0:
                self.fail("C4", f"stride {stride} is not positive")
            result.append(dims.ceildiv(limit - start, stride))
        return (with_shape(self.operand, result),)


@irdl_op_definition
class TransposeOp(GraphOp):
    """Dimension `i` of the result is dimension `permutation[i]` of the operand."""

    name = "stablehlo.transpose"
    operand = operand_def(AnyTensorTypeConstr)
    permutation = prop_def(DenseArrayBase)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (Sizes,)
    assembly_format = (
        "$operand `,` `dims` `=` custom<Sizes>($permutation) attr-dict `:` functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Attribute]:
        shape = shape_of(self.operand)
        permutation: tuple[int, ...] = self.value("permutation")
        if sorted(permutation) != list(range(len(shape))):
            self.fail("C2", f"{list(permutation)} is not a permutation of {len(shape)} dimensions")
        return (with_shape(self.operand, [shape[p] for p in permutation]),)
