"""Which part of an array each device of a mesh holds.

A dimension that is not a multiple of its pieces is cut into pieces of one size, rounded up: the last ones are shorter
or empty, as XLA's partitioner has them (it pads them).
"""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.sharding.layout import DimensionSharding, Sharding
from gcomp.sharding.mesh import Mesh


def local_shape(shape: Sequence[int], sharding: Sharding, mesh: Mesh) -> tuple[int, ...]:
    """The shape of the largest piece, which the first device holds."""
    return tuple(-(-size // d.pieces(mesh)) for size, d in zip(shape, sharding.dimensions, strict=True))


def places_of(sharding: Sharding, mesh: Mesh, device: int) -> tuple[int, ...]:
    """For each dimension, which of its pieces a device holds."""
    at = mesh.coordinates(device)
    return tuple(_place(dimension, mesh, at) for dimension in sharding.dimensions)


def _place(dimension: DimensionSharding, mesh: Mesh, at: dict[str, int]) -> int:
    place = 0
    for axis in dimension.axes:
        place = place * axis.size(mesh) + axis.position(mesh, at[axis.name])
    return place


def piece_of(shape: Sequence[int], sharding: Sharding, mesh: Mesh, device: int) -> tuple[slice, ...]:
    """The part of an array of this shape that a device holds, one slice for each dimension."""
    places, sizes = places_of(sharding, mesh, device), local_shape(shape, sharding, mesh)
    starts = [min(place * size, whole) for place, size, whole in zip(places, sizes, shape, strict=True)]
    return tuple(
        slice(start, min(start + size, whole)) for start, size, whole in zip(starts, sizes, shape, strict=True)
    )


__all__ = ["local_shape", "piece_of", "places_of"]
