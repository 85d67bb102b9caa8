"""Sorting."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyTensorTypeConstr, BoolAttr, IntegerAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.control import check_region
from gcomp.ir.types import BOOL, element_of, rank_of, same_shape, shape_of, tensor


@irdl_op_definition
class SortOp(GraphOp):
    """Sort `inputs` together along `dimension`, by a comparator on one element pair of each."""

    name = "stablehlo.sort"
    inputs = var_operand_def(AnyTensorTypeConstr)
    dimension = prop_def(IntegerAttr, default_value=IntegerAttr(-1, i64))
    is_stable = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    comparator = region_def()
    result = var_result_def(AnyTensorTypeConstr)
    traits = traits_def(RecursiveMemoryEffect())

    def infer(self) -> Sequence[Attribute]:
        return self.operand_types

    def check(self) -> None:
        if not self.inputs:
            self.fail("C1", "there are no inputs")
        shape, rank = shape_of(self.inputs[0]), rank_of(self.inputs[0])
        if not all(same_shape(shape_of(v), shape) for v in self.inputs):
            self.fail("C3", "inputs have different shapes")
        if not -rank <= self.value("dimension") < max(rank, 1):
            self.fail("C4", f"dimension {self.value('dimension')} is not a dimension of rank {rank}")
        pairs = [tensor((), element_of(v)) for v in self.inputs for _ in range(2)]
        check_region(self, self.comparator, pairs, (tensor((), BOOL),), "C5")
