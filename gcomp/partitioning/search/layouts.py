"""Layouts of tensors, and what it takes to get from one to another.

A layout says for each axis of the mesh which dimension it cuts, or `WHOLE`. Of several axes that cut one dimension the
first of the mesh is the major one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

from gcomp.partitioning.search.devices import Devices
from gcomp.sharding import Axis, Mesh, Sharding

Layout = tuple[int, ...]
WHOLE = -1


class Sent(NamedTuple):
    """One collective: its kind, the axis, the bytes of what it gives (or takes, if that is more) on each device, and
    the seconds that it is predicted to take."""

    kind: str
    axis: str
    bytes: int
    seconds: float


def layouts_of(shape: Sequence[int], mesh: Mesh) -> Iterator[Layout]:
    """The layouts that cut each dimension into equal parts, the whole tensor first."""
    for layout in product((WHOLE, *range(len(shape))), repeat=len(mesh.axes)):
        if divides(shape, layout, mesh):
            yield layout


def divides(shape: Sequence[int], layout: Layout, mesh: Mesh) -> bool:
    """Whether all parts of a tensor are of one size, and none that is cut is empty."""
    counts = parts_of(shape, layout, mesh)
    return all(parts == 1 or (size and size % parts == 0) for size, parts in zip(shape, counts, strict=True))


def parts_of(shape: Sequence[int], layout: Layout, mesh: Mesh) -> list[int]:
    """Into how many parts each dimension is cut."""
    return [prod(a.size for a, d in zip(mesh.axes, layout, strict=True) if d == dim) for dim in range(len(shape))]


def pieces(layout: Layout, mesh: Mesh) -> int:
    """Into how many pieces a layout cuts a tensor."""
    return prod(a.size for a, d in zip(mesh.axes, layout, strict=True) if d != WHOLE)


def sharding_of(layout: Layout, rank: int, mesh: Mesh, name: str) -> Sharding:
    """The layout as a closed sharding."""
    return Sharding.of(
        name, [[a.name for a, d in zip(mesh.axes, layout, strict=True) if d == dim] for dim in range(rank)]
    )


class Network:
    """What collectives cost on a mesh of devices, by rings along its axes."""

    def __init__(self, mesh: Mesh, devices: Devices) -> None:
        self.mesh = mesh
        self.devices = devices
        self.reshards = lru_cache(1 << 16)(self._reshard)

    def _sent(self, kind: str, axis: Axis, bytes: float, rounds: float) -> Sent:
        link = self.devices.link_of(axis.name)
        share = bytes * (axis.size - 1) / axis.size
        return Sent(kind, axis.name, round(bytes), rounds * (share / link.bandwidth + (axis.size - 1) * link.latency))

    def all_reduce(self, axis: Axis, bytes: float) -> Sent:
        """Sums of tensors of so many bytes on each device, given to all of an axis."""
        return self._sent("all_reduce", axis, bytes, 2)

    def reduce_scatter(self, axis: Axis, bytes: float) -> Sent:
        """Sums of tensors of so many bytes, of which each device of an axis gets a part."""
        return self._sent("reduce_scatter", axis, bytes, 1)

    def all_gather(self, axis: Axis, bytes: float) -> Sent:
        """Parts that make so many bytes, given to all of an axis."""
        return self._sent("all_gather", axis, bytes, 1)

    def all_to_all(self, axis: Axis, bytes: float) -> Sent:
        """Parts of so many bytes on each device, cut along another dimension than before."""
        return self._sent("all_to_all", axis, bytes, 1)

    def _reshard(self, old: Layout, new: Layout, bytes: float) -> tuple[Sent, ...]:
        """What is sent to get a tensor of so many bytes from one layout to another: what is cut further is cut first,
        and what is gathered is gathered last."""
        sent: list[Sent] = []
        axes = [*zip(self.mesh.axes, old, new, strict=True)]
        own = bytes / pieces(old, self.mesh)
        own /= prod(a.size for a, before, after in axes if before == WHOLE and after != WHOLE)
        for axis, before, after in axes:
            if WHOLE not in (before, after) and before != after:
                sent.append(self.all_to_all(axis, own))
        for axis, before, after in axes:
            if before != WHOLE and after == WHOLE:
                own *= axis.size
                sent.append(self.all_gather(axis, own))
        return tuple(sent)


def seconds(sent: Sequence[Sent]) -> float:
    """How long collectives take, one after another."""
    return sum(s.seconds for s in sent)
