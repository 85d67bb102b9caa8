"""What is for several devices: placed arrays, functions for each device of a mesh, and what devices do together.

Inside of a `shard_map`, collectives name axes of its mesh; their groups are numbers of devices on the whole mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import Block, Region, SSAValue

from gcomp.frontends.jaxpr.context import EqnContext, Frame
from gcomp.frontends.jaxpr.registry import Results, imports, refuses
from gcomp.frontends.jaxpr.shardings import manual, mesh_of, named_sharding, place, read
from gcomp.ir import sdy
from gcomp.ir import stablehlo as hlo
from gcomp.ir.op import GraphOp
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.structures import ChannelHandle
from gcomp.ir.types import element_of, rank_of, shape_of
from gcomp.sharding import Mesh, Sharding

# ---- placing -------------------------------------------------------------------------------------------------------


@imports("sharding_constraint")
def sharding_constraint(ctx: EqnContext) -> Results:
    """The operand, placed; on a mesh without axes it is anywhere."""
    sharding = named_sharding(ctx.params["sharding"])
    if sharding is None:
        return ctx[0]
    found = read(ctx.b, sharding, ctx.aval())
    free: Sequence[int] = [*ctx.params["unconstrained_dims"]]
    opened = [d._replace(is_closed=False) if i in free else d for i, d in enumerate(found.dimensions)]
    attr = sdy.ShardingAttr(found._replace(dimensions=tuple(opened)))
    return ctx.b.emit(sdy.ShardingConstraintOp, ctx[0], sharding=attr)


@imports("reshard")
def reshard(ctx: EqnContext) -> Results:
    """The operand, placed as the result's type says."""
    sharding = named_sharding(ctx.params["dst_sharding"])
    return ctx[0] if sharding is None else place(ctx.b, ctx[0], sharding, ctx.out_aval())


@imports("device_put")
def device_put(ctx: EqnContext) -> Results:
    """The operands, placed; where they are on one device, that is this one."""
    found: list[SSAValue] = []
    for i, (value, device) in enumerate(zip(ctx.operands, ctx.params["devices"], strict=True)):
        sharding = named_sharding(device)
        found.append(value if sharding is None else place(ctx.b, value, sharding, ctx.aval(i)))
    return found


# ---- a function for each device ------------------------------------------------------------------------------------


@imports("shard_map")
def shard_map(ctx: EqnContext) -> Results:
    """A manual computation of the body, which sees the pieces."""
    params = ctx.params
    mesh, frames = mesh_of(params["mesh"]), ctx.importer.frames
    around = frames[-1].axes if frames else frozenset[str]()
    axes = [name for name in mesh.names if name in params["newly_manual_axes"]]
    name = sdy.add_mesh(ctx.b.program.module, mesh)
    frames.append(Frame(name, mesh, around | {*axes}))
    try:
        if all(mesh.axis_size(axis) == 1 for axis in axes):
            return ctx.inline(params["jaxpr"], ctx.operands)
        cut = partial(manual, mesh=name, is_partial=len(axes) < len(mesh.axes))
        inner = [cut(spec, rank=rank_of(v)) for spec, v in zip(params["in_specs"], ctx.operands, strict=True)]
        types = [ctx.out_type(i) for i in range(len(ctx.eqn.outvars))]
        outer = [cut(spec, rank=rank_of(type)) for spec, type in zip(params["out_specs"], types, strict=True)]
        block = Block(arg_types=[ctx.type_of(var.aval) for var in params["jaxpr"].invars])
        with ctx.b.inside(block):
            values = ctx.inline(params["jaxpr"], list(block.args))
            ctx.b.insert(sdy.ReturnOp.of(*values))
    finally:
        frames.pop()
    made = sdy.ManualComputationOp.along(axes, ctx.operands, inner, outer, Region(block), types)
    return list(ctx.b.insert(made).results)


def _frame(ctx: EqnContext, axes: Sequence[str]) -> Frame:
    """The computation around an equation. Refuses axes that are not manual in it."""
    frames = ctx.importer.frames
    for axis in axes:
        if not frames or axis not in frames[-1].axes:
            ctx.unsupported(f"the axis {axis!r} is none of a function around it that is mapped over a mesh")
    return frames[-1]


def _names(value: Any) -> tuple[str, ...]:
    """The axes that a parameter names."""
    return (value,) if isinstance(value, str) else tuple(value)


def _groups(ctx: EqnContext, axes: Sequence[str]) -> list[list[int]]:
    """The devices in groups along axes, which `axis_index_groups` may part further."""
    groups = _frame(ctx, axes).mesh.groups(axes)
    parts = ctx.params.get("axis_index_groups")
    return [[group[i] for i in part] for group in groups for part in (parts or [range(len(group))])]


_CHANNEL = ChannelHandle(1, 1)
"""Groups are of partitions, which ops know by their having a channel."""


def _global(ctx: EqnContext, axes: Sequence[str]) -> dict[str, Any]:
    """The properties of a collective along axes whose groups hold numbers of devices."""
    groups = _groups(ctx, axes)
    if len({len(group) for group in groups}) > 1:
        ctx.unsupported("its groups have different sizes", "use groups of one size")
    return {"replica_groups": groups, "channel_handle": _CHANNEL, "use_global_device_ids": True}


# ---- collectives ---------------------------------------------------------------------------------------------------

_FOLDS: dict[str, type[GraphOp]] = {
    "psum": hlo.AddOp,
    "psum_invariant": hlo.AddOp,
    "pmax": hlo.MaximumOp,
    "pmin": hlo.MinimumOp,
}


def all_reduce(ctx: EqnContext, operand: SSAValue) -> SSAValue:
    """The fold of a value over the devices along the equation's named axes."""
    given: Sequence[int | str] = ctx.params["axes"]
    axes = [axis for axis in given if isinstance(axis, str)]
    op = _FOLDS[ctx.primitive]
    return ctx.b.emit(hlo.AllReduceOp, operand, regions=(scalar_region(op, element_of(operand)),), **_global(ctx, axes))


@imports("psum_invariant")
def psum_invariant(ctx: EqnContext) -> Results:
    """The sum over devices."""
    return [all_reduce(ctx, operand) for operand in ctx.operands]


@imports("all_gather", "all_gather_invariant")
def all_gather(ctx: EqnContext) -> Results:
    """The values of all devices, along a dimension or as a new one."""
    dimension: int = ctx.params["all_gather_dimension"]
    x = ctx[0]
    if not ctx.params["tiled"]:
        shape = list(shape_of(x))
        x = ctx.b.reshape(x, [*shape[:dimension], 1, *shape[dimension:]])
    return ctx.b.emit(hlo.AllGatherOp, x, all_gather_dim=dimension, **_global(ctx, _names(ctx.params["axis_name"])))


@imports("reduce_scatter")
def reduce_scatter(ctx: EqnContext) -> Results:
    """The sum over devices, one part on each."""
    properties = _global(ctx, _names(ctx.params["axis_name"]))
    made = ctx.b.emit(
        hlo.ReduceScatterOp, ctx[0], regions=(scalar_region(hlo.AddOp, element_of(ctx[0])),),
        scatter_dimension=ctx.params["scatter_dimension"], **properties,
    )  # fmt: skip
    return made if ctx.params["tiled"] else ctx.b.reshape(made, ctx.out_shape())


@imports("all_to_all")
def all_to_all(ctx: EqnContext) -> Results:
    """Parts of each device's value, exchanged. (What is not tiled has a dimension of its own for the parts.)"""
    groups = _groups(ctx, _names(ctx.params["axis_name"]))
    if len(groups[0]) == 1:
        return ctx[0]
    return ctx.b.emit(
        hlo.AllToAllOp, ctx[0], split_dimension=ctx.params["split_axis"], concat_dimension=ctx.params["concat_axis"],
        split_count=len(groups[0]), replica_groups=groups, channel_handle=_CHANNEL,
    )  # fmt: skip


@imports("ppermute")
def ppermute(ctx: EqnContext) -> Results:
    """Values that devices send to others along axes."""
    groups = _groups(ctx, _names(ctx.params["axis_name"]))
    moves: Sequence[tuple[int, int]] = ctx.params["perm"]
    pairs = [(group[source], group[target]) for group in groups for source, target in moves]
    return [
        ctx.b.emit(hlo.CollectivePermuteOp, x, source_target_pairs=pairs, channel_handle=_CHANNEL) for x in ctx.operands
    ]


@imports("pbroadcast")
def pbroadcast(ctx: EqnContext) -> Results:
    """The value of one device of each group, on all of them."""
    groups, source = _groups(ctx, _names(ctx.params["axis_name"])), int(ctx.params["source"])
    first = [[group[source], *(d for d in group if d != group[source])] for group in groups]
    return ctx.b.emit(hlo.CollectiveBroadcastOp, ctx[0], replica_groups=first, channel_handle=_CHANNEL)


@imports("axis_index")
def axis_index(ctx: EqnContext) -> Results:
    """Where the device is along an axis, of its number on the mesh."""
    (axis,) = _names(ctx.params["axis_name"])
    frame = _frame(ctx, [axis])
    rest = [name for name in frame.mesh.names if name not in frame.axes]
    if not rest:
        return _index(ctx, frame.mesh, axis)
    # Only where all axes are manual has the device one number.
    block = Block()
    with ctx.b.inside(block):
        ctx.b.insert(sdy.ReturnOp.of(_index(ctx, frame.mesh, axis)))
    made = sdy.ManualComputationOp.along(rest, (), (), [Sharding(frame.name, ())], Region(block), [ctx.out_type()])
    return list(ctx.b.insert(made).results)


def _index(ctx: EqnContext, mesh: Mesh, axis: str) -> SSAValue:
    b, place = ctx.b, mesh.names.index(axis)
    minor = int(np.prod([a.size for a in mesh.axes[place + 1 :]], dtype=np.int64))
    number = b.emit(hlo.PartitionIdOp)
    part = b.divide(number, b.constant(minor, "ui32"))
    return b.convert(b.binary(hlo.RemainderOp, part, b.constant(mesh.axis_size(axis), "ui32")), ctx.out_dtype())


refuses(
    "it is a part of a collective that others may overlap: call the whole",
    "all_gather_done", "all_gather_reduced_start", "all_gather_start", "all_to_all_done", "all_to_all_start",
    "pbroadcast_done", "pbroadcast_start", "ppermute_done", "ppermute_start", "psum_done", "psum_invariant_start",
    "psum_start", "reduce_scatter_done", "reduce_scatter_start", "unreduced_psum_start",
    "unreduced_reduce_scatter_start",
)  # fmt: skip
refuses(
    "arrays whose sums are not taken yet have no type here",
    "all_gather_reduced", "preduced", "reduced_vary_cast_p", "unreduced_psum", "unreduced_reduce_scatter",
    "vary_unreduced_cast_p",
)  # fmt: skip
refuses("it sends to one device by itself: ppermute does it for all", "precv", "psend")
refuses("its parts have sizes of their own, which StableHLO's collectives have not", "ragged_all_to_all")
refuses(
    "it is a step outside of a program", "global_array_to_host_local_array", "host_local_array_to_global_array",
)  # fmt: skip

__all__ = ["all_reduce"]
