"""Ops across devices, and with the host. Those with the host are declared, so that programs can be read and refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar

from xdsl.dialects.builtin import AnyTensorTypeConstr, ArrayAttr, BoolAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Region, SSAValue
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

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir.definitions import irdl_op_definition
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.control import ANY_VALUE, TOKEN, TokenType, check_fold, returned_types
from gcomp.ir.structures import ChannelHandleAttr
from gcomp.ir.types import element_of, rank_of, shape_of, tensor, with_element, with_shape

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
    """An op that groups of devices do together: each gives its operands, and gets results of those of its group.

    Nothing but its results comes of it, so that one that nobody uses may go, on all devices alike.
    """

    replica_groups = prop_def(Attribute)
    channel_handle = opt_prop_def(ChannelHandleAttr)
    traits = traits_def(Pure())

    UNIQUE: ClassVar[str]
    """The constraint that no device is in two groups."""

    @property
    def groups(self) -> tuple[tuple[int, ...], ...] | None:
        """The groups, of ids that `grouping` says how to read; None where they are said by axes of a mesh."""
        return self.value("replica_groups") if isinstance(self.replica_groups, ElementsAttr) else None

    @property
    def grouping(self) -> Grouping:
        """What the ids in the groups are."""
        return Grouping.CROSS_PARTITION if _channel(self) > 0 else Grouping.CROSS_REPLICA

    @property
    def group_size(self) -> int | None:
        """How many devices are in each group; None where that depends on how many there are."""
        groups = self.groups
        return len(groups[0]) if groups and self.grouping is not Grouping.CROSS_REPLICA_AND_PARTITION else None

    def check(self) -> None:
        devices = [d for group in self.groups or () for d in group if d >= 0]
        if len(set(devices)) != len(devices):
            self.fail(self.UNIQUE, f"devices {devices} are not unique")


class Grouping(Enum):
    """What the ids in the groups of a collective are: the specification's ways to make process groups of them."""

    CROSS_REPLICA = "replicas, of one partition"
    CROSS_PARTITION = "partitions, of one replica"
    CROSS_REPLICA_AND_PARTITION = "replicas, of all partitions"
    FLATTENED_IDS = "processes"


class GlobalCollectiveOp(CollectiveOp):
    """A collective whose groups may hold processes by one number: `replica * num_partitions + partition`."""

    use_global_device_ids = opt_prop_def(UnitAttr)

    GLOBAL: ClassVar[str]
    """The constraint that such numbers need a channel."""

    @property
    def grouping(self) -> Grouping:
        if "use_global_device_ids" in self.properties:
            return Grouping.FLATTENED_IDS
        return Grouping.CROSS_REPLICA_AND_PARTITION if _channel(self) > 0 else Grouping.CROSS_REPLICA

    def check(self) -> None:
        super().check()
        if self.grouping is Grouping.FLATTENED_IDS and _channel(self) <= 0:
            self.fail(self.GLOBAL, "use_global_device_ids needs a channel above 0")


def _channel(op: GraphOp) -> int:
    """The channel's number; 0 where there is none."""
    handle = op.properties.get("channel_handle")
    return handle.data.handle if isinstance(handle, ChannelHandleAttr) else 0


@irdl_op_definition
class AllGatherOp(GlobalCollectiveOp):
    """The operands of all devices of a group, concatenated."""

    name = "stablehlo.all_gather"
    UNIQUE: ClassVar = "C2"
    GLOBAL: ClassVar = "C5"
    inputs = var_operand_def(AnyTensorTypeConstr)
    all_gather_dim = prop_def(IntegerAttr)
    result = var_result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        count = self.group_size
        axis: int = self.value("all_gather_dim")
        if count is None:
            return self.result_types
        return [_scaled(value, {axis: shape_of(value)[axis] * count}) for value in self.inputs]

    def check(self) -> None:
        super().check()
        _check_dimension(self, "C1", "all_gather_dim")


@irdl_op_definition
class AllReduceOp(GlobalCollectiveOp):
    """The operands of all devices of a group, folded elementwise."""

    name = "stablehlo.all_reduce"
    UNIQUE: ClassVar = "C1"
    GLOBAL: ClassVar = "C4"
    inputs = var_operand_def(AnyTensorTypeConstr)
    computation = region_def()
    result = var_result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        return [_folded(self.computation, value) for value in self.inputs]

    def check(self) -> None:
        super().check()
        for value in self.inputs:
            check_fold(self, self.computation, (value.type,), "C5")


@irdl_op_definition
class ReduceScatterOp(GlobalCollectiveOp):
    """The operands of all devices of a group, folded elementwise, and cut into one part for each device."""

    name = "stablehlo.reduce_scatter"
    UNIQUE: ClassVar = "C3"
    GLOBAL: ClassVar = "C6"
    operand = operand_def(AnyTensorTypeConstr)
    scatter_dimension = prop_def(IntegerAttr)
    computation = region_def()
    result = result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        count = self.group_size
        axis: int = self.value("scatter_dimension")
        if count is None:
            return self.result_types
        part = _part(self, "C1", self.operand, axis, count)
        return (_scaled(_folded(self.computation, self.operand), {axis: part}),)

    def check(self) -> None:
        super().check()
        _check_dimension(self, "C2", "scatter_dimension")
        check_fold(self, self.computation, (self.operand.type,), "C7")


@irdl_op_definition
class AllToAllOp(CollectiveOp):
    """Each device's operand cut into parts, one sent to each device of its group."""

    name = "stablehlo.all_to_all"
    UNIQUE: ClassVar = "C5"
    inputs = var_operand_def(AnyTensorTypeConstr)
    split_dimension = prop_def(IntegerAttr)
    concat_dimension = prop_def(IntegerAttr)
    split_count = prop_def(IntegerAttr)
    result = var_result_def(AnyTensorTypeConstr)

    def infer(self) -> Sequence[Attribute]:
        count: int = self.value("split_count")
        split: int = self.value("split_dimension")
        concat: int = self.value("concat_dimension")
        types: list[Attribute] = []
        for value in self.inputs:
            part = _part(self, "C2", value, split, count)
            apart = {split: part, concat: shape_of(value)[concat] * count}
            types.append(_scaled(value, apart) if split != concat else value.type)
        return types

    def check(self) -> None:
        super().check()
        _check_dimension(self, "C1", "split_dimension")
        _check_dimension(self, "C3", "concat_dimension")
        if self.value("split_count") <= 0:
            self.fail("C4", "split_count is not positive")
        if self.group_size not in (None, self.value("split_count")):
            self.fail("C8", f"split_count is {self.value('split_count')} for groups of {self.group_size} devices")


@irdl_op_definition
class CollectiveBroadcastOp(CollectiveOp):
    """The operand of the first device of each group, on all of its devices; zeros on devices of no group."""

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
    traits = traits_def(Pure())

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The source and target of each transfer, of ids that `grouping` says how to read."""
        return self.value("source_target_pairs")

    @property
    def grouping(self) -> Grouping:
        """What the ids in the pairs are."""
        return Grouping.CROSS_PARTITION if _channel(self) > 0 else Grouping.CROSS_REPLICA

    def infer(self) -> Sequence[Attribute]:
        return (self.operand.type,)

    def check(self) -> None:
        _check_pairs(self)


def _scaled(value: SSAValue | Attribute, sizes: Mapping[int, Size]) -> Attribute:
    """The type of a value with other sizes of some dimensions."""
    return with_shape(value, [sizes.get(i, size) for i, size in enumerate(shape_of(value))])


def _folded(computation: Region, value: SSAValue) -> Attribute:
    """The type of a value whose elements were folded."""
    returned = returned_types(computation)
    return with_element(value, element_of(returned[0])) if returned else value.type


def _part(op: GraphOp, constraint: str, value: SSAValue, axis: int, count: int) -> Size:
    """The size of each of `count` parts of a dimension."""
    size = shape_of(value)[axis]
    part = dims.exact_div(size, count) if count else None
    if part is None:
        op.fail(constraint, f"a dimension of size {size} is not cut into {count} parts")
    return part


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
