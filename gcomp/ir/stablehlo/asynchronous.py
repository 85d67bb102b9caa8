"""Ops that a backend may run while others run: a future is started, and waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, ArrayAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    operand_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure, RecursiveMemoryEffect

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.control import check_region, entry_block, returned_types


@irdl_attr_definition
class FutureType(ParametrizedAttribute, TypeAttribute):
    """Tensors that will be there when what computes them is done."""

    name = "stablehlo.future"
    types: ArrayAttr[Attribute]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return (ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type)),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.types.data, printer.print_attribute)


@irdl_op_definition
class AsyncStartOp(GraphOp):
    """Start the one op in the body; its results are a future."""

    name = "stablehlo.async_start"
    inputs = var_operand_def(AnyTensorTypeConstr)
    body = region_def()
    result = result_def(FutureType)
    traits = traits_def(RecursiveMemoryEffect())

    STARTED: ClassVar = frozenset(
        f"stablehlo.{name}"
        for name in (
            "all_reduce", "all_gather", "all_to_all", "collective_permute", "reduce_scatter", "collective_broadcast",
            "slice", "dynamic_slice", "dynamic_update_slice",
        )
    )  # fmt: skip
    """The ops that a body may hold."""

    def infer(self) -> Sequence[Attribute]:
        return (FutureType(ArrayAttr(returned_types(self.body) or ())),)

    def check(self) -> None:
        block = entry_block(self, self.body, "C1")
        started, last = block.first_op, block.last_op
        if (
            started is None
            or last is None
            or started.next_op is not last
            or tuple(last.operands) != tuple(started.results)
        ):
            self.fail("C1", "the body is not one op and the return of its results")
        if started.name not in self.STARTED:
            self.fail("C2", f"{started.name} is neither a collective op nor a slice")
        if tuple(started.operands) != tuple(block.args):
            self.fail("C3", "the body's op does not take the body's arguments")
        check_region(self, self.body, self.operand_types, started.result_types, "C3")


@irdl_op_definition
class AsyncDoneOp(GraphOp):
    """The tensors of a future, once they are there."""

    name = "stablehlo.async_done"
    operand = operand_def(FutureType)
    result = var_result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        future = self.operand.type
        return future.types.data if isinstance(future, FutureType) else ()
