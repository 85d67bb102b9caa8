"""What makes a module's meshes and shardings valid beyond their own form: Shardy's checks that need the module."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.ir.sdy.attributes import SHARDING, ShardingPerValueAttr
from gcomp.ir.sdy.ops import ManualComputationOp, MeshOp
from gcomp.ir.sdy.placing import meshes_of, placed, says_something
from gcomp.ir.types import compatible, is_tensor, rank_of, shape_of, with_shape
from gcomp.ir.walking import walk
from gcomp.sharding import Mesh, Sharding, check_sharding

Problem = tuple[Operation, str]


def sharding_problems(module: Operation) -> Iterator[Problem]:
    """Every op that says something of devices that is not valid, and why."""
    meshes = meshes_of(module)
    yield from _mesh_problems(module, meshes)
    for op in filter(says_something, walk(module)):
        found = op.attributes.get(SHARDING)
        if found is not None and not isinstance(found, ShardingPerValueAttr):
            yield op, f"{SHARDING} of an op is a #sdy.sharding_per_value"
        elif found is not None and len(found.data) != len(op.results) and not _is_of_the_op(found, op):
            yield op, f"{SHARDING} has {len(found.data)} shardings for {len(op.results)} results"
        manual = _manual_axes(op)
        for what, value, sharding in placed(op):
            if why := _problem(value.type, sharding, meshes, manual):
                yield op, f"{what}: {why}"
        if isinstance(op, ManualComputationOp):
            yield from _manual_problems(op, meshes, manual)


def _is_of_the_op(found: ShardingPerValueAttr, op: Operation) -> bool:
    """An op without results may say on which device it runs."""
    return not op.results and len(found.data) == 1 and not found.data[0].cuts


def _mesh_problems(module: Operation, meshes: Mapping[str, Mesh]) -> Iterator[Problem]:
    sizes = {mesh.size for mesh in meshes.values() if mesh.axes}
    if len(sizes) > 1:
        first = next(op for op in walk(module) if isinstance(op, MeshOp))
        yield first, f"the meshes of a module have {sorted(sizes)} devices, and must have the same number"


def _manual_axes(op: Operation) -> frozenset[str]:
    """The axes along which the code around an op is written for one device."""
    found: set[str] = set()
    around = op.parent_op()
    while around is not None:
        if isinstance(around, ManualComputationOp):
            found.update(around.axes)
        around = around.parent_op()
    return frozenset(found)


def _problem(type: Attribute, sharding: Sharding, meshes: Mapping[str, Mesh], manual: Collection[str]) -> str | None:
    mesh = meshes.get(sharding.mesh) if isinstance(sharding.mesh, str) else sharding.mesh
    if mesh is None:
        return f"there is no mesh @{sharding.mesh}"
    if why := check_sharding(sharding, mesh, rank_of(type) if is_tensor(type) else None):
        return why
    taken = next((axis for axis in sharding.axes() if axis.name in manual), None)
    return None if taken is None else f'the axis "{taken.name}" is manual in a computation around it'


def _manual_problems(op: ManualComputationOp, meshes: Mapping[str, Mesh], around: Collection[str]) -> Iterator[Problem]:
    used = {s.mesh if isinstance(s.mesh, Mesh) else meshes.get(s.mesh) for s in (*op.inner, *op.outer)}
    on = [mesh for mesh in used if mesh is not None and mesh.axes]
    if len(on) > 1 or (op.axes and used and not on):
        yield op, "its shardings are not on one mesh"
        return
    for name in op.axes:
        if on and name not in on[0].names:
            yield op, f'there is no axis "{name}" in the mesh {on[0].text()}'
        if name in around:
            yield op, f'the axis "{name}" is manual in a computation around it'
    if not on or any(name not in on[0].names for name in op.axes):
        return
    returned = op.block.last_op
    inside = () if returned is None else returned.operands
    for what, values, shardings, local in (
        ("operand", op.operands, op.inner, op.block.args),
        ("result", op.results, op.outer, inside),
    ):
        for index, (value, sharding, piece) in enumerate(zip(values, shardings, local, strict=False)):
            if is_tensor(value.type) and is_tensor(piece.type) and sharding.rank == rank_of(value):
                yield from ((op, f"{what} {index}: {why}") for why in _cuts(op, value, sharding, piece, on[0]))


def _cuts(op: ManualComputationOp, value: SSAValue, sharding: Sharding, piece: SSAValue, mesh: Mesh) -> Iterator[str]:
    """Where a value inside of the body is not a piece of the one outside, as its sharding cuts it."""
    expected: list[Size] = []
    for dimension, size in zip(sharding.dimensions, shape_of(value), strict=True):
        is_manual = [axis.name in op.axes for axis in dimension.axes]
        if is_manual != sorted(is_manual, reverse=True):
            yield f"the manual axes of {dimension.text()} do not come first"
        pieces = 1
        for axis in dimension.axes:
            pieces *= axis.size(mesh) if axis.name in op.axes else 1
        cut = dims.exact_div(size, pieces)
        if cut is None:
            yield f"the manual axes cut a dimension of size {size} into {pieces} pieces"
            return
        expected.append(cut)
    if not compatible(piece.type, with_shape(value, expected)):
        yield f"a piece is {with_shape(value, expected)}, and the body has {piece.type}"


__all__ = ["sharding_problems"]
