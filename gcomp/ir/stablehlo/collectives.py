"""Ops across devices and with the host. They are declared, so that programs that hold them can be read and refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, ArrayAttr, BoolAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.control import ANY_VALUE, TOKEN, TokenType, check_fold
from gcomp.ir.structures import ChannelHandleAttr
from gcomp.ir.types import rank_of, tensor

_FALSE = BoolAttr.from_bool(False)
_DEVICE_TO_DEVICE, _DEVICE_TO_HOST, _HOST_TO_DEVICE = 1, 2, 3


def _check_pairs(op: GraphOp) -> None:
    pairs: Sequence[Sequence[int]] = op.value("source_target_pairs") or ()
    if any(len(pair) != 2 for pair in pairs):
        op.fail("C1", "source_target_pairs are not pairs")
    for constraint, devices in (("C2", [p[0] for p in pairs]), ("C3", [p[1] for p in pairs])):
        if len(set(devices)) != len(devices):
            op.fail(constraint, f"devices {devices} are not unique")


def _check_channel(op: GraphOp, host: int) -> None:
    expected = host if op.value("is_host_transfer") else _DEVICE_TO_DEVICE
    if op.value("channel_handle").type != expected:
        op.fail("C5", f"the channel has type {op.value('channel_handle').type}, expected {expected}")


def _check_dimension(op: GraphOp, constraint: str, name: str) -> None:
    dimension: int = op.value(name)
    if not all(0 <= dimension < rank_of(v) for v in op.operands):
        op.fail(constraint, f"{name} {dimension} is not a dimension of each operand")


class CollectiveOp(GraphOp):
    """An op in which groups of devices take part."""

    replica_groups = prop_def(Attribute)
    channel_handle = opt_prop_def(ChannelHandleAttr)

    UNIQUE: ClassVar[str]
    """The constraint that no device is in two groups."""

    def check(self) -> None:
        if not isinstance(self.replica_groups, ElementsAttr):
            return
        groups: tuple[tuple[int, ...], ...] = self.value("replica_groups")
        devices = [d for group in groups for d in group if d >= 0]
        if len(set(devices)) != len(devices):
            self.fail(self.UNIQUE, f"devices {devices} are not unique")


@irdl_op_definition
class AllGatherOp(CollectiveOp):
    """The operands of all devices of a group, concatenated."""

    name = "stablehlo.all_gather"
    INFERS: ClassVar = False
    UNIQUE: ClassVar = "C2"
    inputs = var_operand_def(AnyTensorTypeConstr)
    all_gather_dim = prop_def(IntegerAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    result = var_result_def(AnyTensorTypeConstr)

    def check(self) -> None:
        super().check()
        _check_dimension(self, "C1", "all_gather_dim")


@irdl_op_definition
class AllReduceOp(CollectiveOp):
    """The operands of all devices of a group, folded elementwise."""

    name = "stablehlo.all_reduce"
    INFERS: ClassVar = False
    UNIQUE: ClassVar = "C1"
    inputs = var_operand_def(AnyTensorTypeConstr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    computation = region_def()
    result = var_result_def(AnyTensorTypeConstr)

    def check(self) -> None:
        super().check()
        for value in self.inputs:
            check_fold(self, self.computation, (value.type,), "C5")


@irdl_op_definition
class ReduceScatterOp(CollectiveOp):
    """The operands of all devices of a group, folded elementwise, and cut into one part for each device."""

    name = "stablehlo.reduce_scatter"
    INFERS: ClassVar = False
    UNIQUE: ClassVar = "C3"
    operand = operand_def(AnyTensorTypeConstr)
    scatter_dimension = prop_def(IntegerAttr)
    use_global_device_ids = opt_prop_def(UnitAttr)
    computation = region_def()
    result = result_def(AnyTensorTypeConstr)

    def check(self) -> None:
        super().check()
        _check_dimension(self, "C2", "scatter_dimension")
        check_fold(self, self.computation, (self.operand.type,), "C7")


@irdl_op_definition
class AllToAllOp(CollectiveOp):
    """Each device's operand cut into parts, one sent to each device of its group."""

    name = "stablehlo.all_to_all"
    INFERS: ClassVar = False
    UNIQUE: ClassVar = "C5"
    inputs = var_operand_def(AnyTensorTypeConstr)
    split_dimension = prop_def(IntegerAttr)
    concat_dimension = prop_def(IntegerAttr)
    split_count = prop_def(IntegerAttr)
    result = var_result_def(AnyTensorTypeConstr)

    def check(self) -> None:
        super().check()
        _check_dimension(self, "C1", "split_dimension")
        _check_dimension(self, "C3", "concat_dimension")
        if self.value("split_count") <= 0:
            self.fail("C4", "split_count is not positive")


@irdl_op_definition
class CollectiveBroadcastOp(CollectiveOp):
    """The operand of the first device of each group, on all of its devices."""

    name = "stablehlo.collective_broadcast"
    UNIQUE: ClassVar = "C1"
    operand = operand_def(AnyTensorTypeConstr)
    result = result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)


@irdl_op_definition
class CollectivePermuteOp(GraphOp):
    """The operand of each source device on its target device; zeros elsewhere."""

    name = "stablehlo.collective_permute"
    operand = operand_def(AnyTensorTypeConstr)
    source_target_pairs = prop_def(ElementsAttr)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    result = result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)

    def check(self) -> None:
        _check_pairs(self)


class DeviceIdOp(GraphOp):
    """A number of the device that executes it."""

    result = result_def(AnyTensorTypeConstr)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def infer(self) -> Sequence[Attribute]:
        return (tensor((), "ui32"),)


@irdl_op_definition
class PartitionIdOp(DeviceIdOp):
    """The partition of the current process."""

    name = "stablehlo.partition_id"


@irdl_op_definition
class ReplicaIdOp(DeviceIdOp):
    """The replica of the current process."""

    name = "stablehlo.replica_id"


class TransferOp(GraphOp):
    """An op that exchanges data with another device or the host."""

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class SendOp(TransferOp):
    """Send tensors through a channel."""

    name = "stablehlo.send"
    inputs = var_operand_def(AnyTensorTypeConstr)
    token = operand_def(TokenType)
    channel_handle = prop_def(ChannelHandleAttr)
    is_host_transfer = prop_def(BoolAttr, default_value=_FALSE)
    source_target_pairs = opt_prop_def(ElementsAttr)
    result = result_def(TokenType)

    def infer(self) -> Sequence[Attribute]:
        return (TOKEN,)

    def check(self) -> None:
        _check_pairs(self)
        _check_channel(self, _DEVICE_TO_HOST)


@irdl_op_definition
class RecvOp(TransferOp):
    """Receive tensors, and a token, from a channel."""

    name = "stablehlo.recv"
    INFERS: ClassVar = False
    token = operand_def(TokenType)
    channel_handle = prop_def(ChannelHandleAttr)
    is_host_transfer = prop_def(BoolAttr, default_value=_FALSE)
    source_target_pairs = opt_prop_def(ElementsAttr)
    result = var_result_def(ANY_VALUE)

    def check(self) -> None:
        _check_pairs(self)
        _check_channel(self, _HOST_TO_DEVICE)
        _check_last_token(self, "C")


@irdl_op_definition
class InfeedOp(TransferOp):
    """Take tensors, and a token, from the host."""

    name = "stablehlo.infeed"
    INFERS: ClassVar = False
    token = operand_def(TokenType)
    infeed_config = prop_def(StringAttr, default_value=StringAttr(""))
    layout = opt_prop_def(ArrayAttr)
    result = var_result_def(ANY_VALUE)

    def check(self) -> None:
        _check_last_token(self, "C3")


@irdl_op_definition
class OutfeedOp(TransferOp):
    """Give tensors to the host."""

    name = "stablehlo.outfeed"
    inputs = var_operand_def(AnyTensorTypeConstr)
    token = operand_def(TokenType)
    outfeed_config = prop_def(StringAttr, default_value=StringAttr(""))
    result = result_def(TokenType)

    def infer(self) -> Sequence[Attribute]:
        return (TOKEN,)


def _check_last_token(op: GraphOp, constraint: str) -> None:
    if not op.results or op.results[-1].type != TOKEN:
        op.fail(constraint, "the last result is not a token")
