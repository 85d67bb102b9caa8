"""Ops that the specification has dropped but programs may still hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from gcomp.ir.assembly import PrecisionConfig, Sizes
from gcomp.ir.attributes import sizes_of
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.enums import PrecisionAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.contraction import check_kind
from gcomp.ir.types import rank_of, same_shape, same_size, shape_of, with_shape


@irdl_op_definition
class BroadcastOp(GraphOp):
    """The operand repeated along new leading dimensions."""

    name = "stablehlo.broadcast"
    operand = operand_def(AnyTensorTypeConstr)
    broadcast_sizes = prop_def(Attribute)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (Sizes,)
    assembly_format = (
        "$operand `,` `sizes` `=` custom<Sizes>($broadcast_sizes) attr-dict `:` functional-type(operands, results)"
    )

    def infer(self) -> Sequence[Attribute]:
        return (with_shape(self.operand, (*sizes_of(self.broadcast_sizes), *shape_of(self.operand))),)


@irdl_op_definition
class DotOp(GraphOp):
    """The product of vectors or matrices; the result's element type is declared."""

    name = "stablehlo.dot"
    INFERS: ClassVar = False
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    custom_directives = (PrecisionConfig,)
    assembly_format = (
        "$lhs `,` $rhs custom<PrecisionConfig>($precision_config) attr-dict `:` functional-type(operands, results)"
    )

    def check(self) -> None:
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        if len(lhs) not in (1, 2) or len(rhs) not in (1, 2):
            self.fail("C1", "operands are neither vectors nor matrices")
        if not same_size(lhs[-1], rhs[0]):
            self.fail("C2", f"sizes {lhs[-1]} and {rhs[0]} differ")
        if not same_shape((*lhs[:-1], *rhs[1:]), shape_of(self.result)):
            self.fail("C3", f"the result's shape is {shape_of(self.result)}, expected {(*lhs[:-1], *rhs[1:])}")
        check_kind(self, "C4", (self.lhs, self.rhs))


@irdl_op_definition
class EinsumOp(GraphOp):
    """A sum of products in Einstein's notation; the result's type is declared."""

    name = "stablehlo.einsum"
    INFERS: ClassVar = False
    lhs = operand_def(AnyTensorTypeConstr)
    rhs = operand_def(AnyTensorTypeConstr)
    einsum_config = prop_def(StringAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class UnaryEinsumOp(GraphOp):
    """A sum over one operand in Einstein's notation; the result's type is declared."""

    name = "stablehlo.unary_einsum"
    INFERS: ClassVar = False
    operand = operand_def(AnyTensorTypeConstr)
    einsum_config = prop_def(StringAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `config` `=` $einsum_config attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class TorchIndexSelectOp(GraphOp):
    """Slices of `operand` along `dim` at the positions in `index`."""

    name = "stablehlo.torch_index_select"
    operand = operand_def(AnyTensorTypeConstr)
    index = operand_def(AnyTensorTypeConstr)
    dim = prop_def(IntegerAttr)
    batch_dims = prop_def(IntegerAttr)
    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())

    def infer(self) -> Sequence[Attribute]:
        dim, batch, shape = self.value("dim"), self.value("batch_dims"), shape_of(self.operand)
        if not 0 <= batch <= dim < rank_of(self.operand) or batch > rank_of(self.index):
            self.fail("C1", f"dim {dim} and batch_dims {batch} do not fit {self.operand.type} and {self.index.type}")
        return (with_shape(self.operand, (*shape[:dim], *shape_of(self.index)[batch:], *shape[dim + 1 :])),)


@irdl_op_definition
class CrossReplicaSumOp(GraphOp):
    """The sum of the operands of all devices of a group."""

    name = "stablehlo.cross-replica-sum"
    operand = operand_def(AnyTensorTypeConstr)
    replica_groups = prop_def(ElementsAttr)
    result = result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)
