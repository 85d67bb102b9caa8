"""JAX's meshes and shardings in gcomp's: `NamedSharding`s of specs, and the types of arrays on explicit meshes.

A mesh is its axes: its devices are numbered in the mesh's own order, as JAX compiles it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from gcomp.errors import UnsupportedError
from gcomp.frontends.jaxpr.avals import trailing
from gcomp.frontends.jaxpr.jax_api import jax
from gcomp.ir import sdy
from gcomp.ir.builder import Builder
from gcomp.ir.program import Program
from gcomp.sharding import AxisRef, DimensionSharding, Mesh, Sharding


def mesh_of(mesh: Any) -> Mesh:
    """The mesh of a `jax.sharding.Mesh` or `AbstractMesh`."""
    return Mesh.of(mesh.shape_tuple)


def named_sharding(value: Any) -> Any | None:
    """A sharding on a mesh with axes; None for what places nothing. Raises UnsupportedError for others."""
    if isinstance(value, jax.sharding.NamedSharding):
        return value if value.mesh.axis_names else None
    if isinstance(value, jax.sharding.Sharding) and len(value.device_set) > 1:
        raise UnsupportedError(
            f"gcomp does not read a {type(value).__name__}", why=str(value)[:200],
            fix="say it as a jax.sharding.NamedSharding",
        )  # fmt: skip
    return None


def dimensions(spec: Any, rank: int, *, is_open: bool = False) -> tuple[DimensionSharding, ...]:
    """The dimensions of a `PartitionSpec`, which may say less than all; open ones may be cut further."""
    entries = [*spec.partitions, *(None,) * (rank - len(spec.partitions))]
    return tuple(_dimension(entry, is_open) for entry in entries)


def _dimension(entry: Any, is_open: bool) -> DimensionSharding:
    if entry is jax.sharding.PartitionSpec.UNCONSTRAINED:
        return DimensionSharding(is_closed=False)
    names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
    return DimensionSharding(tuple(AxisRef(name) for name in names), not is_open)


def read(b: Builder, sharding: Any, aval: Any) -> Sharding:
    """The sharding of an array of a type, on a mesh that the program declares."""
    if getattr(sharding.spec, "unreduced", None):
        raise UnsupportedError("gcomp does not import unreduced arrays", why=f"the sharding is {sharding.spec}")
    name = sdy.add_mesh(b.program.module, mesh_of(sharding.mesh))
    found = dimensions(sharding.spec, len(aval.shape))
    return Sharding(name, (*found, *(DimensionSharding(),) * len(trailing(aval))))


def place(b: Builder, value: SSAValue, sharding: Any, aval: Any) -> SSAValue:
    """A value that lies where a sharding of JAX's says."""
    return b.emit(sdy.ShardingConstraintOp, value, sharding=sdy.ShardingAttr(read(b, sharding, aval)))


def explicit_sharding(aval: Any) -> Any | None:
    """What an array's type says of its place, where its mesh has explicit axes; None where it says nothing."""
    sharding = getattr(aval, "sharding", None)
    kinds: Collection[Any] = getattr(getattr(sharding, "mesh", None), "axis_types", ())
    return sharding if jax.sharding.AxisType.Explicit in kinds else None


def explicit(b: Builder, sharding: Any, aval: Any) -> Sharding:
    """The sharding that a type says: only axes that are not explicit may cut the array further."""
    mesh = sharding.mesh
    found = read(b, sharding, aval)
    if all(kind is jax.sharding.AxisType.Explicit for kind in mesh.axis_types):
        return found
    used = {axis.name for axis in found.axes()}
    kept = [
        AxisRef(name)
        for name, kind in zip(mesh.axis_names, mesh.axis_types, strict=True)
        if kind is jax.sharding.AxisType.Explicit and name not in used
    ]
    opened = tuple(d._replace(is_closed=False) for d in found.dimensions)
    return found._replace(dimensions=opened, replicated=tuple(kept))


def manual(spec: Any, mesh: str, rank: int, *, is_partial: bool) -> Sharding:
    """How a value of a `shard_map` is cut; where some axes are not manual, they may cut it further."""
    return Sharding(mesh, dimensions(spec, rank, is_open=is_partial))


def place_ports(program: Program, shardings: Sequence[Any], avals: Sequence[Any]) -> None:
    """Say of a program's inputs how the arrays lie that stand for them; None says nothing."""
    named = [named_sharding(sharding) for sharding in shardings]
    if any(sharding is not None for sharding in named):
        b = Builder(program)
        found = [None if s is None else read(b, s, aval) for s, aval in zip(named, avals, strict=True)]
        known = sdy.argument_shardings(program.main)
        sdy.set_argument_shardings(program.main, [old or new for old, new in zip(known, found, strict=True)])


def settle_ports(program: Program) -> None:
    """Make properties of inputs and outputs of constraints that speak of those alone."""
    main, returned = program.main, program.returned
    given, taken = sdy.argument_shardings(main), sdy.result_shardings(main)
    for argument in program.block.args:
        use = argument.get_user_of_unique_use()
        if isinstance(use, sdy.ShardingConstraintOp) and given[argument.index] in (None, use.layout):
            given[argument.index] = use.layout
            use.result.replace_all_uses_with(argument)
            Rewriter.erase_op(use)
    for i, value in enumerate(returned.operands):
        made = value.owner
        if isinstance(made, sdy.ShardingConstraintOp) and value.has_one_use():
            taken[i] = made.layout
            value.replace_all_uses_with(made.input)
            Rewriter.erase_op(made)
    if given != sdy.argument_shardings(main):
        sdy.set_argument_shardings(main, given)
    if taken != sdy.result_shardings(main):
        sdy.set_result_shardings(main, taken)


__all__ = [
    "explicit",
    "explicit_sharding",
    "manual",
    "mesh_of",
    "named_sharding",
    "place",
    "place_ports",
    "read",
    "settle_ports",
]
