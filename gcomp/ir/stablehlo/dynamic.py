"""Ops whose result shape is a run-time operand. Their result types are declared, with `?` or symbolic dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, ArrayAttr, DenseArrayBase, IndexType, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import NoMemoryEffect, Pure

from gcomp import dims
from gcomp.ir.assembly import I64, Sizes
from gcomp.ir.attributes import ConvDimensionNumbers
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.enums import PrecisionAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.contraction import check_conv_dimensions, check_groups, check_precisions
from gcomp.ir.stablehlo.movement import check_permutation
from gcomp.ir.types import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    UNKNOWN,
    compatible,
    differ_always,
    element_of,
    rank_of,
    same_shape,
    shape_of,
    tensor,
    with_shape,
)

_SIZES = INTEGERS | {IndexType()}


def check_sizes(op: GraphOp, value: SSAValue, count: int, input: str, constraint: str) -> None:
    """Refuse an operand that is not a vector of `count` integers."""
    if element_of(value) not in _SIZES or rank_of(value) != 1:
        op.fail(input, f"{value.type} is not a vector of integers")
    if not same_shape(shape_of(value), (count,)):
        op.fail(constraint, f"{value.type} has not one size for each of {count} dimensions")


def _check_elements(op: GraphOp, a: SSAValue, b: SSAValue) -> None:
    if element_of(a) != element_of(b):
        op.fail("C1", f"{a.type} and {b.type} have different element types")


@irdl_op_definition
class DynamicBroadcastInDimOp(GraphOp):
    """`broadcast_in_dim` to the shape in `output_dimensions`."""

    name = "stablehlo.dynamic_broadcast_in_dim"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    output_dimensions = operand_def(AnyTensorTypeConstr)
    broadcast_dimensions = prop_def(DenseArrayBase)
    known_expanding_dimensions = opt_prop_def(DenseArrayBase)
    known_nonexpanding_dimensions = opt_prop_def(DenseArrayBase)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    custom_directives = (Sizes,)
    assembly_format = (
        "$operand `,` $output_dimensions `,` `dims` `=` custom<Sizes>($broadcast_dimensions) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def check(self) -> None:
        dimensions: tuple[int, ...] = self.value("broadcast_dimensions")
        source, target = shape_of(self.operand), shape_of(self.result)
        _check_elements(self, self.operand, self.result)
        if len(dimensions) != len(source):
            self.fail("C2", f"{len(dimensions)} broadcast_dimensions for an operand of rank {len(source)}")
        if not all(0 <= d < len(target) for d in dimensions):
            self.fail("C3", f"{list(dimensions)} are not dimensions of rank {len(target)}")
        check_permutation(self, "C4", dimensions, len(target))
        for size, dimension in zip(source, dimensions, strict=True):
            if differ_always(size, 1) and differ_always(size, target[dimension]):
                self.fail("C5", f"size {size} does not broadcast to {target[dimension]}")
        check_sizes(self, self.output_dimensions, len(target), "I2", "C7")
        growing = self.value("known_expanding_dimensions") or ()
        staying = self.value("known_nonexpanding_dimensions") or ()
        if len(set(growing + staying)) != len(growing + staying):
            self.fail("C8", "a dimension is known twice")
        for constraint, known in (("C9", growing), ("C10", staying)):
            check_permutation(self, constraint, known, len(source))


@irdl_op_definition
class DynamicConvOp(GraphOp):
    """`convolution` whose padding is an operand."""

    name = "stablehlo.dynamic_conv"
    INFERS: ClassVar = False
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    padding = operand_def(AnyTensorTypeConstr)
    window_strides = opt_prop_def(DenseArrayBase)
    lhs_dilation = opt_prop_def(DenseArrayBase)
    rhs_dilation = opt_prop_def(DenseArrayBase)
    window_reversal = opt_prop_def(DenseArrayBase)
    dimension_numbers = prop_def(ConvDimensionNumbers)
    feature_group_count = prop_def(IntegerAttr)
    batch_group_count = prop_def(IntegerAttr)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())

    def check(self) -> None:
        rank = rank_of(self.lhs)
        if rank_of(self.rhs) != rank or rank < 2:
            self.fail("C1", "operands have different ranks, or rank below 2")
        for count, sign, name in (
            ("C2", "C3", "window_strides"),
            ("C5", "C6", "lhs_dilation"),
            ("C7", "C8", "rhs_dilation"),
            ("C9", "", "window_reversal"),
        ):
            values: Sequence[int] | None = self.value(name)
            if values is not None and len(values) != rank - 2:
                self.fail(count, f"{name} needs one value for each of {rank - 2} spatial dimensions")
            if sign and any(v <= 0 for v in values or ()):
                self.fail(sign, f"{name} is not positive")
        if element_of(self.padding) not in _SIZES or not same_shape(shape_of(self.padding), (rank - 2, 2)):
            self.fail("C4", f"the padding {self.padding.type} is not {rank - 2} pairs of integers")
        d = self.dimension_numbers.data
        check_conv_dimensions(self, d, rank)
        check_groups(self, d, self.lhs, self.rhs)
        check_precisions(self, "C24")
        if rank_of(self.result) != rank:
            self.fail("C26", f"the result has rank {rank_of(self.result)}, expected {rank}")


@irdl_op_definition
class DynamicIotaOp(GraphOp):
    """`iota` of the shape in `output_shape`."""

    name = "stablehlo.dynamic_iota"
    INFERS: ClassVar = False
    output_shape = operand_def(AnyTensorTypeConstr)
    iota_dimension = prop_def(IntegerAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    custom_directives = (I64,)
    assembly_format = (
        "$output_shape `,` `dim` `=` custom<I64>($iota_dimension) attr-dict `:` functional-type(operands, results)"
    )

    def check(self) -> None:
        if not 0 <= self.value("iota_dimension") < rank_of(self.result):
            self.fail("C1", "iota_dimension is not a dimension of the result")
        check_sizes(self, self.output_shape, rank_of(self.result), "I1", "C2")
        if element_of(self.result) not in INTEGERS | FLOATS | COMPLEX:
            self.fail("O", "the result's elements are not numbers")


@irdl_op_definition
class DynamicPadOp(GraphOp):
    """`pad` by run-time amounts."""

    name = "stablehlo.dynamic_pad"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    padding_value = operand_def(AnyTensorTypeConstr)
    edge_padding_low = operand_def(AnyTensorTypeConstr)
    edge_padding_high = operand_def(AnyTensorTypeConstr)
    interior_padding = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        _check_elements(self, self.operand, self.padding_value)
        _check_elements(self, self.operand, self.result)
        rank = rank_of(self.operand)
        if rank_of(self.padding_value):
            self.fail("I2", "the padding value is not a scalar")
        for constraint, amounts in zip(("I3", "I4", "I5"), self.operands[2:], strict=True):
            check_sizes(self, amounts, rank, constraint, "C2")
        if rank_of(self.result) != rank:
            self.fail("C4", f"the result has rank {rank_of(self.result)}, expected {rank}")


@irdl_op_definition
class DynamicReshapeOp(GraphOp):
    """`reshape` to the shape in `output_shape`."""

    name = "stablehlo.dynamic_reshape"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    output_shape = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        _check_elements(self, self.operand, self.result)
        before, after = shape_of(self.operand), shape_of(self.result)
        if UNKNOWN not in (*before, *after) and differ_always(dims.product(before), dims.product(after)):
            self.fail("C2", f"{self.operand.type} does not have the elements of {self.result.type}")
        check_sizes(self, self.output_shape, len(after), "I2", "C4")


@irdl_op_definition
class RealDynamicSliceOp(GraphOp):
    """`slice` by run-time bounds and strides."""

    name = "stablehlo.real_dynamic_slice"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    start_indices = operand_def(AnyTensorTypeConstr)
    limit_indices = operand_def(AnyTensorTypeConstr)
    strides = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        _check_elements(self, self.operand, self.result)
        rank = rank_of(self.operand)
        for constraint, indices in zip(("I2", "I3", "I4"), self.operands[1:], strict=True):
            check_sizes(self, indices, rank, constraint, "C2")
        if rank_of(self.result) != rank:
            self.fail("C3", f"the result has rank {rank_of(self.result)}, expected {rank}")


@irdl_op_definition
class GetDimensionSizeOp(GraphOp):
    """The size of one dimension."""

    name = "stablehlo.get_dimension_size"
    operand = operand_def(AnyTensorTypeConstr)
    dimension = prop_def(IntegerAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (I64,)
    assembly_format = "$operand `,` `dim` `=` custom<I64>($dimension) attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Attribute]:
        if not 0 <= self.value("dimension") < rank_of(self.operand):
            self.fail("C1", f"dimension {self.value('dimension')} is not a dimension of {self.operand.type}")
        return (tensor((), "i32"),)


@irdl_op_definition
class SetDimensionSizeOp(GraphOp):
    """`operand` with the size of one dimension declared to be `size`."""

    name = "stablehlo.set_dimension_size"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    size = operand_def(AnyTensorTypeConstr)
    dimension = prop_def(IntegerAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(NoMemoryEffect())
    custom_directives = (I64,)
    assembly_format = (
        "$operand `,` $size `,` `dim` `=` custom<I64>($dimension) attr-dict `:` functional-type(operands, results)"
    )

    def check(self) -> None:
        dimension: int = self.value("dimension")
        if not 0 <= dimension < rank_of(self.operand):
            self.fail("C1", f"dimension {dimension} is not a dimension of {self.operand.type}")
        if not compatible(self.size.type, tensor((), "i32")):
            self.fail("I2", f"the size has type {self.size.type}, expected tensor<i32>")
        shape = list(shape_of(self.operand))
        shape[dimension] = UNKNOWN
        if not compatible(self.result.type, with_shape(self.operand, shape)):
            self.fail("C2", f"the result's type is {self.result.type}, which its operands do not allow")
