"""What makes meshes and shardings valid, as Shardy's verifiers say. Each check returns what is wrong, or None."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gcomp.sharding.layout import Sharding
from gcomp.sharding.mesh import AxisRef, Mesh, SubAxis


def check_mesh(mesh: Mesh) -> str | None:
    """Why a mesh is not valid, or None."""
    ids = mesh.device_ids
    if any(device < 0 for device in ids):
        return f"device ids {list(ids)} are negative"
    if not mesh.axes:
        return f"a mesh without axes has {len(ids)} devices, expected none or one" if len(ids) > 1 else None
    if len(set(mesh.names)) != len(mesh.names):
        return f"the axes {list(mesh.names)} do not have names of their own"
    for axis in mesh.axes:
        if axis.size < 1:
            return f'the axis "{axis.name}" has size {axis.size}'
    if not ids:
        return None
    if len(ids) != mesh.size:
        return f"the axes have {mesh.size} places, and there are {len(ids)} devices"
    if sorted(ids) != list(range(mesh.size)):
        return f"the device ids {list(ids)} are not 0 to {mesh.size - 1} in some order"
    if list(ids) == list(range(mesh.size)):
        return "device ids in plain order are left out"
    return None


def check_sharding(sharding: Sharding, mesh: Mesh, rank: int | None) -> str | None:
    """Why a sharding is not valid on its mesh for an array of a rank (None: a value that is no array), or None."""
    if mesh.is_maximal or rank is None:
        if sharding.rank or sharding.replicated or sharding.unreduced:
            what = "a value on one device" if mesh.is_maximal else "a value that is no tensor"
            return f"the sharding of {what} has no dimensions and no axes"
        return None
    if sharding.rank != rank:
        return f"the sharding has {sharding.rank} dimensions, and the tensor has {rank}"
    for position, dimension in enumerate(sharding.dimensions):
        if dimension.priority is not None and dimension.is_closed and not dimension.axes:
            return f"dimension {position} is closed and not cut, so its priority means nothing"
    lists = [*(d.axes for d in sharding.dimensions), sharding.replicated, sharding.unreduced]
    if why := check_axes(lists, mesh):
        return why
    for word, axes in (("replicated", sharding.replicated), ("unreduced", sharding.unreduced)):
        if list(axes) != sorted(axes, key=lambda axis: _order(axis, mesh)):
            return f"the {word} axes are not in the order of the mesh"
    return None


def check_axes(lists: Iterable[Sequence[AxisRef]], mesh: Mesh) -> str | None:
    """Why lists of axes of one value are not valid, or None."""
    lists = [*lists]
    for axis in (axis for axes in lists for axis in axes):
        if why := _check_axis(axis, mesh):
            return why
    seen: list[AxisRef] = []
    for axes in lists:
        for before, axis in zip((None, *axes), axes, strict=False):
            if axis in seen:
                return f"the axis {axis.text()} is used twice"
            if (other := next((s for s in seen if s.overlaps(axis)), None)) is not None:
                return f"the axes {other.text()} and {axis.text()} overlap"
            if before is not None and _can_merge(before, axis):
                return f"the axes {before.text()}, {axis.text()} are written as one"
            seen.append(axis)
    return None


def _check_axis(axis: AxisRef, mesh: Mesh) -> str | None:
    if axis.name not in mesh.names:
        return f'there is no axis "{axis.name}" in the mesh {mesh.text()}'
    part, size = axis.part, mesh.axis_size(axis.name)
    if part is None:
        return None
    if part.pre_size < 1 or part.size < 2:
        return f"{axis.text()} has a pre-size below 1, or a size below 2"
    if size % part.next_pre_size:
        return f"{axis.text()} does not divide the axis, which has size {size}"
    if part.size == size:
        return f"{axis.text()} is the whole axis, and is written so"
    return None


def _order(axis: AxisRef, mesh: Mesh) -> tuple[int, int, int]:
    """Where a reference stands among others, as Shardy compares them."""
    place = mesh.names.index(axis.name)
    part = axis.part or SubAxis(1, axis.size(mesh))
    return place, part.pre_size, part.size


def _can_merge(major: AxisRef, minor: AxisRef) -> bool:
    """Whether two parts of an axis, side by side, are one part."""
    if major.name != minor.name or major.part is None or minor.part is None:
        return False
    return major.part.next_pre_size == minor.part.pre_size


__all__ = ["check_axes", "check_mesh", "check_sharding"]
