"""Meshes and shardings as people write them, on a command line or in Python.

    mesh       data=2,model=4
    sharding   data,*        the first dimension is cut along data, the second is not
               data+model,?  along both axes; the second dimension is left to propagation

In Python, a mesh is also a dict, and a sharding a sequence of an axis, a tuple of axes, `None` or `"?"` for each
dimension, as JAX's `PartitionSpec`. What a sharding does not mention is not cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from gcomp.sharding.layout import DimensionSharding, Sharding
from gcomp.sharding.mesh import AxisRef, Mesh

MeshSpec = Mesh | Mapping[str, int] | str
Entry = str | Sequence[str] | None
ShardingSpec = str | Sequence[Entry]

_AXIS = re.compile(r"([A-Za-z_]\w*)=([1-9][0-9]{0,8})")


def read_mesh(spec: MeshSpec) -> Mesh:
    """The mesh that somebody wrote. Raises ValueError, which says why."""
    if isinstance(spec, Mesh):
        return spec
    if isinstance(spec, str):
        found = [_AXIS.fullmatch(part.strip()) for part in spec.split(",")]
        if any(match is None for match in found):
            raise ValueError(f"{spec!r} is not a mesh: write it as data=2,model=4")
        pairs = [(match[1], int(match[2])) for match in found if match is not None]
    else:
        pairs = list(spec.items())
        if any(type(size) is not int or size < 1 for _, size in pairs):
            raise ValueError(f"{spec!r} is not a mesh: sizes are whole numbers from 1 on")
    if not pairs or len({name for name, _ in pairs}) < len(pairs):
        raise ValueError(f"{spec!r} is not a mesh: it has axes, each with a name of its own")
    return Mesh.of(pairs)


def read_sharding(spec: ShardingSpec, mesh: str, rank: int) -> Sharding:
    """The sharding that somebody wrote, for an array of a rank. Raises ValueError, which says why."""
    entries: list[Entry] = list(spec.split(",")) if isinstance(spec, str) else list(spec)
    if len(entries) > rank:
        raise ValueError(f"it speaks of {len(entries)} dimensions, and the array has {rank}")
    return Sharding(mesh, tuple(map(_dimension, [*entries, *[None] * (rank - len(entries))])))


def _dimension(entry: Entry) -> DimensionSharding:
    if entry is None or (isinstance(entry, str) and entry.strip() in ("*", "")):
        return DimensionSharding()
    names = [name.strip() for name in (entry.split("+") if isinstance(entry, str) else entry)]
    axes = tuple(AxisRef(name) for name in names if name != "?")
    return DimensionSharding(axes, is_closed="?" not in names)


def spec_of(value: object) -> ShardingSpec:
    """A sharding as it was given: a text, a sequence, or a `PartitionSpec`."""
    entries = getattr(value, "partitions", value)
    return cast("ShardingSpec", entries)


__all__ = ["MeshSpec", "ShardingSpec", "read_mesh", "read_sharding", "spec_of"]
