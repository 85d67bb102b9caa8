"""Indexing with run-time indices: gather, scatter, dynamic_slice and dynamic_update_slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, BoolAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    SameVariadicOperandSize,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect

from gcomp.dims import Size
from gcomp.ir.assembly import Sizes, VariadicOperands
from gcomp.ir.attributes import (
    GatherDimensionNumbers,
    GatherDimensions,
    ScatterDimensionNumbers,
    ScatterDimensions,
    sizes_of,
)
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.control import check_fold, returned_types
from gcomp.ir.types import (
    INTEGERS,
    UNKNOWN,
    below,
    compatible,
    element_of,
    rank_of,
    same_shape,
    same_size,
    shape_of,
    tensor,
    with_shape,
)

_FALSE = BoolAttr.from_bool(False)


def _is_sorted(values: Sequence[int]) -> bool:
    return list(values) == sorted(values)


def _is_unique(values: Sequence[int]) -> bool:
    return len(set(values)) == len(values)


def _within(values: Sequence[int], rank: int) -> bool:
    return all(0 <= v < rank for v in values)


def _index_size(indices: Sequence[Size], index_vector_dim: int) -> Size:
    """How many coordinates each index has."""
    return indices[index_vector_dim] if index_vector_dim < len(indices) else 1


def _without(sizes: Sequence[Size], dimensions: Sequence[int]) -> list[Size]:
    return [s for i, s in enumerate(sizes) if i not in dimensions]


def _combine(batch: Sequence[Size], window: Sequence[Size], window_dims: Sequence[int]) -> list[Size]:
    """The shape with `window` at `window_dims` and `batch` at the other dimensions, each in order."""
    rest, inside = iter(batch), iter(window)
    return [next(inside if i in window_dims else rest) for i in range(len(batch) + len(window))]


def _check_gather(
    op: GraphOp, d: GatherDimensions, operand: Sequence[Size], indices: Sequence[Size], cite: Mapping[int, int]
) -> None:
    """Refuse dimension numbers that break gather's constraints; `cite` renumbers them for the op at hand."""
    rank = len(indices)
    joined = d.collapsed_slice_dims + d.operand_batching_dims
    result_rank = len(d.offset_dims) + rank - (d.index_vector_dim < rank)
    named = d.offset_dims, d.collapsed_slice_dims, d.operand_batching_dims
    for number, holds, message in (
        (1, len(operand) == sum(map(len, named)), f"{named} do not cover an operand of rank {len(operand)}"),
        (2, 0 <= d.index_vector_dim <= rank, f"index_vector_dim {d.index_vector_dim} exceeds rank {rank}"),
        (4, _is_unique(d.offset_dims) and _is_sorted(d.offset_dims), "offset_dims are not sorted and unique"),
        (5, _within(d.offset_dims, result_rank), f"offset_dims are not dimensions of rank {result_rank}"),
        (6, _is_unique(joined), "collapsed_slice_dims and operand_batching_dims overlap"),
        (7, _is_sorted(d.collapsed_slice_dims), "collapsed_slice_dims are not sorted"),
        (8, _within(d.collapsed_slice_dims, len(operand)), "collapsed_slice_dims are not dimensions of the operand"),
        (10, _is_sorted(d.operand_batching_dims), "operand_batching_dims are not sorted"),
        (11, _within(d.operand_batching_dims, len(operand)), "operand_batching_dims are not the operand's"),
        (13, _is_unique(d.start_indices_batching_dims), "start_indices_batching_dims are not unique"),
        (14, _within(d.start_indices_batching_dims, rank), "start_indices_batching_dims are not the indices'"),
        (15, d.index_vector_dim not in d.start_indices_batching_dims, "index_vector_dim is a batching dimension"),
        (16, len(d.operand_batching_dims) == len(d.start_indices_batching_dims), "batching dims differ in number"),
        (18, _is_unique(d.start_index_map + d.operand_batching_dims), "start_index_map is not unique"),
        (19, _within(d.start_index_map, len(operand)), "start_index_map has dimensions that the operand has not"),
    ):
        if not holds:
            op.fail(f"C{cite.get(number, number)}", message)
    if not same_size(_index_size(indices, d.index_vector_dim), len(d.start_index_map)):
        op.fail("C3", f"start_index_map has {len(d.start_index_map)} dimensions, unlike the indices")
    for i, j in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
        if not same_size(operand[i], indices[j]):
            op.fail(f"C{cite.get(17, 17)}", f"batching sizes {operand[i]} and {indices[j]} differ")


def _gathered_shape(d: GatherDimensions, indices: Sequence[Size], sizes: Sequence[Size]) -> list[Size]:
    window = _without(sizes, d.collapsed_slice_dims + d.operand_batching_dims)
    return _combine(_without(indices, (d.index_vector_dim,)), window, d.offset_dims)


@irdl_op_definition
class GatherOp(GraphOp):
    """Slices of `operand` at `start_indices`; an index out of bounds is clamped."""

    name = "stablehlo.gather"
    operand = operand_def(AnyTensorTypeConstr)
    start_indices = operand_def(AnyTensorTypeConstr)
    dimension_numbers = prop_def(GatherDimensionNumbers)
    slice_sizes = prop_def(Attribute)
    indices_are_sorted = prop_def(BoolAttr, default_value=_FALSE)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @property
    def dimensions(self) -> GatherDimensions:
        """The dimension numbers."""
        return self.dimension_numbers.data

    def infer(self) -> Sequence[Attribute]:
        d, operand, indices = self.dimensions, shape_of(self.operand), shape_of(self.start_indices)
        sizes = sizes_of(self.slice_sizes)
        _check_gather(self, d, operand, indices, {})
        if len(sizes) != len(operand):
            self.fail("C20", f"{len(sizes)} slice_sizes for an operand of rank {len(operand)}")
        for constraint, dimensions in (("C9", d.collapsed_slice_dims), ("C12", d.operand_batching_dims)):
            if any(below(1, sizes[i]) for i in dimensions):
                self.fail(constraint, f"slice_sizes are not at most 1 at {list(dimensions)}")
        for size, limit in zip(sizes, operand, strict=True):
            if below(size, 0) or below(limit, size):
                self.fail("C21", f"slice size {size} does not fit a dimension of size {limit}")
        return (with_shape(self.operand, _gathered_shape(d, indices, sizes)),)

    def check(self) -> None:
        if element_of(self.start_indices) not in INTEGERS:
            self.fail("I2", "start_indices are not integers")


_DYNAMIC_GATHER = {7: 6, 8: 7, 10: 6, 11: 7, 13: 6, 14: 7, 15: 2, 16: 1, 17: 12, 18: 9, 19: 10}


@irdl_op_definition
class DynamicGatherOp(GraphOp):
    """`gather` whose slice sizes are an operand; the result's shape is declared."""

    name = "stablehlo.dynamic_gather"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    start_indices = operand_def(AnyTensorTypeConstr)
    slice_sizes = operand_def(AnyTensorTypeConstr)
    dimension_numbers = prop_def(GatherDimensionNumbers)
    indices_are_sorted = prop_def(BoolAttr, default_value=_FALSE)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    @property
    def dimensions(self) -> GatherDimensions:
        """The dimension numbers."""
        return self.dimension_numbers.data

    def check(self) -> None:
        d, operand, indices = self.dimensions, shape_of(self.operand), shape_of(self.start_indices)
        for constraint, value in (("I2", self.start_indices), ("I3", self.slice_sizes)):
            if element_of(value) not in INTEGERS:
                self.fail(constraint, f"{value.type} does not hold integers")
        _check_gather(self, d, operand, indices, _DYNAMIC_GATHER)
        if not same_shape(shape_of(self.slice_sizes), (len(operand),)):
            self.fail("C11", f"slice_sizes {self.slice_sizes.type} for an operand of rank {len(operand)}")
        expected = _gathered_shape(d, indices, [UNKNOWN] * len(operand))
        if not compatible(self.result.type, with_shape(self.operand, expected)):
            self.fail("C13", f"the result's type is {self.result.type}, which its operands do not allow")


@irdl_op_definition
class ScatterOp(GraphOp):
    """`inputs` with slices at `scatter_indices` updated by the body; updates out of bounds are left out."""

    name = "stablehlo.scatter"
    inputs = var_operand_def(AnyTensorTypeConstr)
    scatter_indices = operand_def(AnyTensorTypeConstr)
    updates = var_operand_def(AnyTensorTypeConstr)
    scatter_dimension_numbers = prop_def(ScatterDimensionNumbers)
    indices_are_sorted = prop_def(BoolAttr, default_value=_FALSE)
    unique_indices = prop_def(BoolAttr, default_value=_FALSE)
    update_computation = region_def()
    result = var_result_def(AnyTensorTypeConstr)
    irdl_options = (ParsePropInAttrDict(), SameVariadicOperandSize())
    traits = traits_def(RecursiveMemoryEffect())

    @property
    def dimensions(self) -> ScatterDimensions:
        """The dimension numbers."""
        return self.scatter_dimension_numbers.data

    def infer(self) -> Sequence[Attribute]:
        if not self.inputs:
            self.fail("C5", "there are no inputs")
        outputs = returned_types(self.update_computation) or self.inputs.types
        return [tensor(shape_of(self.inputs[0]), element_of(o)) for o in outputs]

    def check(self) -> None:
        d, shape, indices = self.dimensions, shape_of(self.inputs[0]), shape_of(self.scatter_indices)
        if element_of(self.scatter_indices) not in INTEGERS:
            self.fail("I2", "scatter_indices are not integers")
        for value, update in zip(self.inputs, self.updates, strict=True):
            if not same_shape(shape_of(value), shape):
                self.fail("C1", "inputs have different shapes")
            if not same_shape(shape_of(update), shape_of(self.updates[0])):
                self.fail("C3", "updates have different shapes")
            if element_of(value) != element_of(update):
                self.fail("C6", f"{value.type} is updated by {update.type}")
        self._check_numbers(d, shape, indices)
        self._check_updates(d, shape, indices, shape_of(self.updates[0]))
        check_fold(self, self.update_computation, self.inputs.types, "C23")

    def _check_numbers(self, d: ScatterDimensions, shape: Sequence[Size], indices: Sequence[Size]) -> None:
        rank, update_rank = len(indices), rank_of(self.updates[0])
        joined = d.inserted_window_dims + d.input_batching_dims
        for number, holds, message in (
            (2, len(shape) == len(d.update_window_dims) + len(joined), f"rank {len(shape)} is not covered"),
            (7, _is_unique(d.update_window_dims) and _is_sorted(d.update_window_dims), "update_window_dims unsorted"),
            (8, _within(d.update_window_dims, update_rank), "update_window_dims are not the updates'"),
            (9, _is_unique(joined), "inserted_window_dims and input_batching_dims overlap"),
            (10, _is_sorted(d.inserted_window_dims), "inserted_window_dims are not sorted"),
            (11, _within(d.inserted_window_dims, len(shape)), "inserted_window_dims are not the inputs'"),
            (12, _is_sorted(d.input_batching_dims), "input_batching_dims are not sorted"),
            (13, _within(d.input_batching_dims, len(shape)), "input_batching_dims are not the inputs'"),
            (14, _is_unique(d.scatter_indices_batching_dims), "scatter_indices_batching_dims are not unique"),
            (15, _within(d.scatter_indices_batching_dims, rank), "scatter_indices_batching_dims are not the indices'"),
            (16, d.index_vector_dim not in d.scatter_indices_batching_dims, "index_vector_dim is a batching dim"),
            (17, len(d.input_batching_dims) == len(d.scatter_indices_batching_dims), "batching dims differ in number"),
            (20, _is_unique(d.scatter_dims_to_operand_dims + d.input_batching_dims), "a dimension is indexed twice"),
            (21, _within(d.scatter_dims_to_operand_dims, len(shape)), "scatter_dims_to_operand_dims out of range"),
            (22, 0 <= d.index_vector_dim <= rank, f"index_vector_dim {d.index_vector_dim} exceeds rank {rank}"),
        ):
            if not holds:
                self.fail(f"C{number}", message)
        if not same_size(_index_size(indices, d.index_vector_dim), len(d.scatter_dims_to_operand_dims)):
            self.fail("C19", f"{len(d.scatter_dims_to_operand_dims)} dimensions are indexed, unlike the indices")
        for i, j in zip(d.input_batching_dims, d.scatter_indices_batching_dims, strict=True):
            if not same_size(shape[i], indices[j]):
                self.fail("C18", f"batching sizes {shape[i]} and {indices[j]} differ")

    def _check_updates(
        self, d: ScatterDimensions, shape: Sequence[Size], indices: Sequence[Size], update: Sequence[Size]
    ) -> None:
        limits = _without(shape, d.inserted_window_dims + d.input_batching_dims)
        batch = _without(indices, (d.index_vector_dim,))
        if len(update) != len(batch) + len(limits):
            self.fail("C4", f"updates have rank {len(update)}, expected {len(batch) + len(limits)}")
        bounds = _combine(batch, limits, d.update_window_dims)
        for i, (size, bound) in enumerate(zip(update, bounds, strict=True)):
            if below(bound, size) if i in d.update_window_dims else not same_size(size, bound):
                self.fail("C4", f"updates of shape {tuple(update)} do not fit {tuple(bounds)}")


def _check_starts(op: GraphOp, starts: Sequence[Attribute], rank: int, cite: tuple[str, str, str]) -> None:
    count, same, integers = cite
    if len(starts) != rank:
        op.fail(count, f"{len(starts)} start indices for rank {rank}")
    for start in starts:
        if start != starts[0]:
            op.fail(same, f"start indices have types {starts[0]} and {start}")
        if rank_of(start) or element_of(start) not in INTEGERS:
            op.fail(integers, f"start index {start} is not a scalar of integer type")


@irdl_op_definition
class DynamicSliceOp(GraphOp):
    """A slice at run-time `start_indices`, which are clamped so that it fits."""

    name = "stablehlo.dynamic_slice"
    operand = operand_def(AnyTensorTypeConstr)
    start_indices = var_operand_def(AnyTensorTypeConstr)
    slice_sizes = prop_def(Attribute)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (Sizes, VariadicOperands)
    assembly_format = (
        "$operand `,` custom<VariadicOperands>($start_indices) `sizes` `=` custom<Sizes>($slice_sizes) attr-dict "
        "`:` functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Attribute]:
        sizes, shape = sizes_of(self.slice_sizes), shape_of(self.operand)
        if len(sizes) != len(shape):
            self.fail("C2", f"{len(sizes)} slice sizes for rank {len(shape)}")
        for size, limit in zip(sizes, shape, strict=True):
            if below(size, 0) or below(limit, size):
                self.fail("C4", f"slice size {size} does not fit a dimension of size {limit}")
        return (with_shape(self.operand, sizes),)

    def check(self) -> None:
        _check_starts(self, self.start_indices.types, rank_of(self.operand), ("C2", "C3", "I2"))


@irdl_op_definition
class DynamicUpdateSliceOp(GraphOp):
    """`operand` with `update` at run-time `start_indices`, which are clamped so that it fits."""

    name = "stablehlo.dynamic_update_slice"
    operand = operand_def(AnyTensorTypeConstr)
    update = operand_def(AnyTensorTypeConstr)
    start_indices = var_operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)

    def check(self) -> None:
        if element_of(self.update) != element_of(self.operand):
            self.fail("C2", "operand and update have different element types")
        if rank_of(self.update) != rank_of(self.operand):
            self.fail("C3", "operand and update have different ranks")
        _check_starts(self, self.start_indices.types, rank_of(self.operand), ("C4", "C5", "I3"))
        for size, limit in zip(shape_of(self.update), shape_of(self.operand), strict=True):
            if below(limit, size):
                self.fail("C6", f"an update of size {size} does not fit a dimension of size {limit}")
