"""Derivatives of what devices do together: of the values of all devices in those of all devices.

So the cotangent of a sum over devices is, on each of them, the sum of the cotangents. Of a manual computation, a result
that several devices hold is their mean, as they hold the same; the cotangent of an operand that several devices read is
the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.autodiff.control import copy_ops, replace_op
from gcomp.autodiff.sweeps import Forward, Maybe, Reverse, Row, differentiable, register
from gcomp.autodiff.table import Refused, chooses, linear, nothing
from gcomp.errors import UnsupportedError
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.structures import ChannelHandle
from gcomp.ir.types import element_of, tensor_of
from gcomp.sharding import Mesh, Sharding

# ---- collectives ---------------------------------------------------------------------------------------------------

Transposed = Callable[[Builder, Any, SSAValue, SSAValue], SSAValue]
"""Of a collective, one of its operands and the cotangent of its result: the operand's cotangent."""


@dataclass(frozen=True)
class EachOperand(Row):
    """A collective that is linear, and has a result for each operand."""

    transpose: Transposed

    def push(self, sweep: Forward, op: Operation) -> None:
        for operand, result in zip(op.operands, op.results, strict=True):
            if (tangent := sweep.get(operand)) is not None:
                made = type(op).create(
                    operands=[tangent], result_types=[result.type], properties=dict(op.properties),
                    regions=[region.clone() for region in op.regions],
                )  # fmt: skip
                sweep.add(result, sweep.b.insert(made).results[0])

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        for operand, cotangent in zip(op.operands, cotangents, strict=True):
            if cotangent is not None and sweep.wants(operand):
                found = self.transpose(sweep.b, op, operand, cotangent)
                sweep.add(operand, sweep.b.convert(found, element_of(operand)))


_GROUPS = ("replica_groups", "channel_handle", "use_global_device_ids")


def _sums(b: Builder, kind: Any, op: Any, like: SSAValue, x: SSAValue, **more: Any) -> SSAValue:
    """A collective of sums among the same devices, whose result has the shape of a value."""
    groups = {name: op.properties[name] for name in _GROUPS if name in op.properties}
    regions = (scalar_region(hlo.AddOp, element_of(x)),)
    type = tensor_of(b.convert(like, element_of(x)))
    return b.emit(kind, x, types=(type,), regions=regions, **groups, **more)


def _reduced(b: Builder, op: Any, operand: SSAValue, g: SSAValue) -> SSAValue:
    return _sums(b, hlo.AllReduceOp, op, operand, g)


def _gathered(b: Builder, op: Any, operand: SSAValue, g: SSAValue) -> SSAValue:
    return _sums(b, hlo.ReduceScatterOp, op, operand, g, scatter_dimension=op.value("all_gather_dim"))


def _scattered(b: Builder, op: Any, operand: SSAValue, g: SSAValue) -> SSAValue:
    groups = {name: op.properties[name] for name in _GROUPS if name in op.properties}
    type = tensor_of(b.convert(operand, element_of(g)))
    return b.emit(hlo.AllGatherOp, g, types=(type,), all_gather_dim=op.value("scatter_dimension"), **groups)


def _turned(b: Builder, op: Any, operand: SSAValue, g: SSAValue) -> SSAValue:
    properties = dict(op.properties)
    properties["split_dimension"] = op.properties["concat_dimension"]
    properties["concat_dimension"] = op.properties["split_dimension"]
    return b.emit(hlo.AllToAllOp, g, types=(operand.type,), **properties)


def _sent_back(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    return _permute(b, op, g, [(target, source) for source, target in op.pairs])


def _collected(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    """The sum over a group, on its first device."""
    if op.groups is None:
        raise UnsupportedError("its groups are said by axes of a mesh", where=where(op))
    longest = max(map(len, op.groups), default=0)
    sent = [_permute(b, op, g, [(group[j], group[0]) for group in op.groups if j < len(group)]) for j in range(longest)]
    total = sent[0] if sent else b.full_like(g, 0)
    for more in sent[1:]:
        total = b.add(total, more)
    return total


def _permute(b: Builder, op: Any, x: SSAValue, pairs: Sequence[tuple[int, int]]) -> SSAValue:
    channel = op.properties.get("channel_handle")
    return b.emit(hlo.CollectivePermuteOp, x, source_target_pairs=pairs, channel_handle=channel)


_NO_SUM = Refused("it folds what devices have by something else than a sum", "gather the values, and fold them on each")
_FOLDS: dict[type[Operation], Row] = {
    hlo.AllReduceOp: EachOperand(_reduced),
    hlo.ReduceScatterOp: EachOperand(_scattered),
}


@chooses(*_FOLDS)
def fold(op: Any) -> Row:
    """Sums are linear."""
    return _FOLDS[type(op)] if sdy.folded_op(op.computation) is hlo.AddOp else _NO_SUM


register(EachOperand(_gathered), hlo.AllGatherOp)
register(EachOperand(_turned), hlo.AllToAllOp)
linear(hlo.CollectivePermuteOp, _sent_back, 0)
linear(hlo.CollectiveBroadcastOp, _collected, 0)
nothing("it has no operand", hlo.PartitionIdOp, hlo.ReplicaIdOp)

# ---- values on meshes ----------------------------------------------------------------------------------------------


for _op in (sdy.ShardingConstraintOp, sdy.ReshardOp):
    # The cotangent lies as the value does.
    linear(_op, lambda b, op, g, _, kind=_op: b.emit(kind, g, sharding=op.sharding), 0)
nothing("it says where a value lies", sdy.ShardingGroupOp)
nothing("it ends a region", sdy.ReturnOp)


class Manual(Row):
    """A computation for one device: its derivative is one, of the derivative of its body."""

    def push(self, sweep: Forward, op: Operation) -> None:
        assert isinstance(op, sdy.ManualComputationOp)
        b, moving = sweep.b, [i for i, v in enumerate(op.operands) if sweep.get(v) is not None]
        body = op.body.clone()
        block, inner = body.block, Forward(b)
        for i in moving:
            inner.put(block.args[i], block.insert_arg(block.args[i].type, len(block.args)))
        inner.run(list(block.ops)[:-1])
        returned = _returned(block)
        made = [i for i, v in enumerate(returned) if inner.get(v) is not None and differentiable(op.results[i])]
        _return(b, block, [*returned, *[inner.derivative_at(returned[i]) for i in made]])
        new = sdy.ManualComputationOp.along(
            op.axes, [*op.operands, *[sweep.derivative_at(op.operands[i]) for i in moving]],
            [*op.inner, *[op.inner[i] for i in moving]], [*op.outer, *[op.outer[i] for i in made]], body,
            [*op.result_types, *[op.results[i].type for i in made]],
        )  # fmt: skip
        b.insert(new)
        old, count = list(op.results), len(op.results)
        replace_op(op, new)
        for place, i in enumerate(made):
            for result in (old[i], new.results[i]):
                sweep.put(result, new.results[count + place])

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        assert isinstance(op, sdy.ManualComputationOp)
        b, mesh = sweep.b, _mesh(sweep.b.program.module, op)
        wanted = [i for i, v in enumerate(op.operands) if sweep.wants(v)]
        given = [(i, c) for i, c in enumerate(cotangents) if c is not None]
        returned = _returned(op.block)
        block = Block(arg_types=[*op.block.arg_types, *[returned[i].type for i, _ in given]])
        with b.inside(block):
            mapping: dict[SSAValue, SSAValue] = dict(zip(op.block.args, block.args, strict=False))
            ops = copy_ops(b, list(op.block.ops)[:-1], mapping)
            sources = [block.args[i] for i in wanted]
            inner = sweep.inner(ops, sources)
            for (i, _), arg in zip(given, block.args[len(op.operands) :], strict=True):
                holders = _pieces(mesh, _uncut(op, mesh, op.outer[i]))
                inner.add(mapping.get(returned[i], returned[i]), b.scale(arg, 1 / holders) if holders > 1 else arg)
            inner.run(ops)
            results = [
                _sum_over(b, mesh, _uncut(op, mesh, op.inner[i]), inner.derivative_at(source))
                for i, source in zip(wanted, sources, strict=True)
            ]
            b.insert(sdy.ReturnOp.of(*results))
        new = sdy.ManualComputationOp.along(
            op.axes, [*op.operands, *[c for _, c in given]], [*op.inner, *[op.outer[i] for i, _ in given]],
            [op.inner[i] for i in wanted], Region(block), [op.operands[i].type for i in wanted],
        )  # fmt: skip
        b.insert(new)
        for i, result in zip(wanted, new.results, strict=True):
            sweep.add(op.operands[i], result)


def _mesh(module: Operation, op: sdy.ManualComputationOp) -> Mesh:
    meshes = sdy.meshes_of(module)
    found = [sdy.mesh_of(sharding, meshes) for sharding in (*op.inner, *op.outer)]
    return next((mesh for mesh in found if mesh.axes), Mesh(()))


def _uncut(op: sdy.ManualComputationOp, mesh: Mesh, sharding: Sharding) -> list[str]:
    """The manual axes along which devices hold the same of a value."""
    cut = [axis for dimension in sharding.dimensions for axis in dimension.axes]
    if any(axis.part is not None and axis.name in op.axes for axis in cut):
        raise UnsupportedError("a part of an axis is manual", where=where(op))
    names = {axis.name for axis in cut}
    return [name for name in op.axes if name not in names and mesh.axis_size(name) > 1]


def _pieces(mesh: Mesh, names: Sequence[str]) -> int:
    count = 1
    for name in names:
        count *= mesh.axis_size(name)
    return count


def _sum_over(b: Builder, mesh: Mesh, names: Sequence[str], x: SSAValue) -> SSAValue:
    """The sum of a value over the devices along axes."""
    if not names:
        return x
    return b.emit(
        hlo.AllReduceOp, x, regions=(scalar_region(hlo.AddOp, element_of(x)),), replica_groups=mesh.groups(names),
        channel_handle=ChannelHandle(1, 1), use_global_device_ids=True,
    )  # fmt: skip


def _returned(block: Block) -> list[SSAValue]:
    """What a body returns."""
    assert block.last_op is not None
    return list(block.last_op.operands)


def _return(b: Builder, block: Block, values: Sequence[SSAValue]) -> None:
    """Let a body return other values."""
    last, point = block.last_op, b.point
    assert last is not None
    b.point = InsertPoint.before(last)
    b.insert(sdy.ReturnOp.of(*values))
    b.point = point
    Rewriter.erase_op(last)


register(Manual(), sdy.ManualComputationOp)
