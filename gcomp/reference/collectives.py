"""Ops between devices, and computations that are written for one device of a mesh.

Inside of a manual computation every device of the mesh runs the body, those along other axes too: along these, all
compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.locations import where
from gcomp.ir.stablehlo.collectives import CollectiveOp, Grouping
from gcomp.ir.types import is_tensor
from gcomp.reference.lockstep import Device, meets
from gcomp.reference.numpy import collectives
from gcomp.reference.table import Array, Entry, Exchange, Place, Request, Scope, Value, meaning
from gcomp.sharding import Mesh, Sharding, piece_of, places_of

Run = Generator[Request, list[Value], Sequence[Value]]
Given = Sequence[Sequence[Value]]
"""What each device gives."""

# ---- what a device does --------------------------------------------------------------------------------------------


@meaning(
    hlo.AllGatherOp, hlo.AllReduceOp, hlo.ReduceScatterOp, hlo.AllToAllOp, hlo.CollectiveBroadcastOp,
    hlo.CollectivePermuteOp,
)  # fmt: skip
def collective(op: Operation, args: Sequence[Value], scope: Scope) -> Run:
    """Waits for the other devices."""
    return (yield Exchange(op, args))


@meaning(hlo.PartitionIdOp)
def partition_id(op: hlo.PartitionIdOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The device's own number."""
    return (np.array(_place(op, scope).partition, np.uint32),)


@meaning(hlo.ReplicaIdOp)
def replica_id(op: hlo.ReplicaIdOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The number of the device's replica."""
    return (np.array(_place(op, scope).replica, np.uint32),)


def _place(op: Operation, scope: Scope) -> Place:
    if scope.place is None:
        raise UnsupportedError(
            f"{op.name} is another on each device, and this is run for all of them", where=where(op),
            fix="run it inside of a manual computation, or the program by interpret_on_devices",
        )  # fmt: skip
    return scope.place


# ---- what comes of it ----------------------------------------------------------------------------------------------

_GROUPINGS: Mapping[Grouping, Callable[[collectives.Groups, int, int], list[list[int]]]] = {
    Grouping.CROSS_REPLICA: collectives.cross_replica,
    Grouping.CROSS_PARTITION: collectives.cross_partition,
    Grouping.CROSS_REPLICA_AND_PARTITION: collectives.cross_replica_and_partition,
    Grouping.FLATTENED_IDS: collectives.flattened_ids,
}


def _processes(
    op: Any, groups: collectives.Groups | None, devices: Sequence[Device], *, all_of_them: bool
) -> list[list[int]]:
    """The groups of an op as numbers of processes, among these devices."""
    place = devices[0].place
    if groups is None or place is None:
        raise UnsupportedError(f"the groups of {op.name} are said by axes of a mesh", where=where(op))
    found = _GROUPINGS[op.grouping](groups, place.replicas, place.partitions)
    named = [process for group in found for process in group]
    if any(not 0 <= process < len(devices) for process in named):
        raise InvalidModelError(
            f"{op.name} names a device that there is not", where=where(op),
            why=f"its ids are {op.grouping.value}: {sorted(set(named))}, and there are {len(devices)} devices",
        )  # fmt: skip
    if all_of_them and len(named) < len(devices):
        missing = sorted({*range(len(devices))} - {*named})
        raise InvalidModelError(f"the groups of {op.name} leave out the devices {missing}", where=where(op))
    return found


def _within_groups(
    op: CollectiveOp, given: Given, devices: Sequence[Device], of_group: Callable[..., list[Array]]
) -> Given:
    """What a function of a group's arrays gives to each device, for each operand in turn."""
    results: list[list[Value]] = [[None] * len(op.operands) for _ in devices]
    for group in _processes(op, op.groups, devices, all_of_them=True):
        for i in range(len(op.operands)):
            for process, result in zip(group, of_group([given[p][i] for p in group]), strict=True):
                results[process][i] = result
    return results


def _fold(op: Any, devices: Sequence[Device], value: SSAValue) -> dict[str, Any]:
    """The body of a collective that folds, and the type that it computes in."""
    body = devices[0].body(op.computation)

    def fold(a: Array, b: Array) -> Array:
        return body(a, b)[0]

    return {"body": fold, "dtype": devices[0].dtype(value)}


@meets(hlo.AllGatherOp)
def all_gather(op: hlo.AllGatherOp, given: Given, devices: Sequence[Device]) -> Given:
    """All operands of a group, concatenated."""
    gather = partial(collectives.all_gather, all_gather_dim=op.value("all_gather_dim"))
    return _within_groups(op, given, devices, gather)


@meets(hlo.AllReduceOp)
def all_reduce(op: hlo.AllReduceOp, given: Given, devices: Sequence[Device]) -> Given:
    """The fold of a group's operands."""
    return _within_groups(op, given, devices, partial(collectives.all_reduce, **_fold(op, devices, op.results[0])))


@meets(hlo.ReduceScatterOp)
def reduce_scatter(op: hlo.ReduceScatterOp, given: Given, devices: Sequence[Device]) -> Given:
    """The parts of that fold."""
    scatter = partial(collectives.reduce_scatter, scatter_dimension=op.value("scatter_dimension"))
    return _within_groups(op, given, devices, partial(scatter, **_fold(op, devices, op.result)))


@meets(hlo.AllToAllOp)
def all_to_all(op: hlo.AllToAllOp, given: Given, devices: Sequence[Device]) -> Given:
    """The parts of a group's operands, turned around."""
    names = ("split_dimension", "concat_dimension", "split_count")
    return _within_groups(op, given, devices, partial(collectives.all_to_all, **{n: op.value(n) for n in names}))


@meets(hlo.CollectiveBroadcastOp)
def collective_broadcast(op: hlo.CollectiveBroadcastOp, given: Given, devices: Sequence[Device]) -> Given:
    """What the first of a group has."""
    groups = _processes(op, op.groups, devices, all_of_them=False)
    return _sent(given, {target: group[0] for group in groups for target in group})


@meets(hlo.CollectivePermuteOp)
def collective_permute(op: hlo.CollectivePermuteOp, given: Given, devices: Sequence[Device]) -> Given:
    """What each source sends to its target."""
    pairs = _processes(op, op.pairs, devices, all_of_them=False) if op.pairs else []
    return _sent(given, {target: source for source, target in pairs})


def _sent(given: Given, source_of: Mapping[int, int]) -> Given:
    """What the source of each device gives; zeros where it has none."""
    zeros = np.zeros_like(given[0][0])
    return [[given[source_of[i]][0] if i in source_of else zeros] for i in range(len(given))]


# ---- values on meshes ----------------------------------------------------------------------------------------------


@meaning(sdy.ShardingConstraintOp, sdy.ReshardOp, elementwise=True)
def place(op: sdy.PlacingOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The operand: where it lies does not change what it is."""
    return args


@meaning(sdy.ShardingGroupOp)
def sharding_group(op: sdy.ShardingGroupOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """Nothing."""
    return ()


@meaning(sdy.ManualComputationOp)
def manual_computation(op: sdy.ManualComputationOp, args: Sequence[Value], scope: Scope) -> Run:
    """Every device runs the body on its pieces; the results are put together."""
    mesh = _mesh(op, scope.meshes())
    if scope.place is not None:
        pieces = _pieces(op, mesh, args, scope.place.partition)
        return (yield Exchange(op, (yield Entry(op.block, pieces, {}))))
    given = scope.spread(op, op.body, [_pieces(op, mesh, args, device) for device in range(mesh.size)])
    return [_joined(op, mesh, given, 0, i) for i in range(len(op.results))]


@meets(sdy.ManualComputationOp)
def join_computation(op: sdy.ManualComputationOp, given: Given, devices: Sequence[Device]) -> Given:
    """The results on each device of a computation inside of another: from those that differ along its axes alone."""
    mesh = _mesh(op, devices[0].meshes())
    return [[_joined(op, mesh, given, device, i) for i in range(len(op.results))] for device in range(mesh.size)]


def _mesh(op: sdy.ManualComputationOp, meshes: Mapping[str, Mesh]) -> Mesh:
    """The mesh that a computation is on; without shardings, one device."""
    found = (sdy.mesh_of(sharding, meshes) for sharding in (*op.inner, *op.outer))
    return next((mesh for mesh in found if mesh.axes), Mesh.of([("", 1)]))


def _pieces(op: sdy.ManualComputationOp, mesh: Mesh, args: Sequence[Value], device: int) -> list[Value]:
    """What a device holds of the operands."""
    return [
        arg[piece_of(arg.shape, sharding.only(op.axes), mesh, device)] if sharding.rank else arg
        for arg, sharding in zip(args, op.inner, strict=True)
    ]


def _joined(op: sdy.ManualComputationOp, mesh: Mesh, given: Given, device: int, i: int) -> Value:
    """A result as a device has it, of what those hold that differ from it along the manual axes alone."""
    sharding = op.outer[i].only(op.axes)
    group = next(group for group in mesh.groups(op.axes) if device in group)
    if not is_tensor(op.results[i].type):
        return given[device][i]
    first: Array = given[device][i]
    shape = [size * d.pieces(mesh) for size, d in zip(first.shape, sharding.dimensions, strict=True)]
    result = np.empty(shape, first.dtype)
    holders: dict[tuple[int, ...], int] = {}
    for holder in group:
        other = holders.setdefault(places_of(sharding, mesh, holder), holder)
        if other == holder:
            result[piece_of(shape, sharding, mesh, holder)] = given[holder][i]
        elif given[holder][i].tobytes() != given[other][i].tobytes():
            raise InvalidModelError(
                f"the devices disagree about result {i} of a manual computation", where=where(op),
                why=f"{_held(sharding)} on devices {other} and {holder}, and they hold different values",
                fix="reduce or gather it along the axes that do not cut it, or cut it along them",
            )  # fmt: skip
    return result


def _held(sharding: Sharding) -> str:
    return f"out_shardings {sharding.text()} say that the same lies"


__all__ = ["collective", "manual_computation"]
