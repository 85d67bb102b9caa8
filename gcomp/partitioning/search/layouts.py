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

from gcomp.dims import Size
from gcomp.partitioning.cuts import Cut, Move, Step, counts, steps
from gcomp.partitioning.search.devices import Devices
from gcomp.sharding import Axis, Mesh, Sharding

Layout = tuple[int, ...]
Steps = tuple[Step, ...]
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
        """The cost of a reduce-scatter of a tensor of so many bytes along an axis."""
        return self._sent("reduce_scatter", axis, bytes, 1)

    def all_gather(self, axis: Axis, bytes: float) -> Sent:
        """Parts that make so many bytes, given to all of an axis."""
        return self._sent("all_gather", axis, bytes, 1)

    def all_to_all(self, axis: Axis, bytes: float) -> Sent:
        """Parts of so many bytes on each device, cut along another dimension than before."""
        return self._sent("all_to_all", axis, bytes, 1)

    def permute(self, axes: Sequence[Axis], bytes: float) -> Sent:
        """Parts of so many bytes on each device, sent whole to others along some axes."""
        links = [self.devices.link_of(axis.name) for axis in axes]
        time = bytes / min(link.bandwidth for link in links) + max(link.latency for link in links)
        return Sent(Move.PERMUTE, "+".join(axis.name for axis in axes), round(bytes), time)

    def moving(self, step: Step, before: Cut, bytes: float) -> Sent | None:
        """What a step sends of parts that have so many bytes after it; None where it sends nothing."""
        if step.move is Move.SLICE:
            return None
        if step.move is Move.PERMUTE:
            turned = {a for old, new in zip(before, step.cut, strict=True) if old != new for a in new}
            return self.permute([axis for axis in self.mesh.axes if axis.name in turned], bytes)
        axis = next(axis for axis in self.mesh.axes if axis.name == step.axis)
        return (self.all_gather if step.move is Move.ALL_GATHER else self.all_to_all)(axis, bytes)

    def _reshard(self, old: Layout, new: Layout, shape: tuple[Size, ...], bytes: float) -> tuple[Sent, ...]:
        """What is sent to get a tensor of so many bytes from one layout to another."""
        cut, target = (cut_of_layout(layout, len(shape), self.mesh) for layout in (old, new))
        return self.sent(cut, target, shape, bytes)

    def sent(self, old: Cut, new: Cut, shape: tuple[Size, ...], bytes: float) -> tuple[Sent, ...]:
        """The messages that bring a tensor of so many bytes from one cut into another."""
        return tuple([sent for _, sent in self.moves(old, new, shape, bytes)])

    def moves(self, old: Cut, new: Cut, shape: tuple[Size, ...], bytes: float) -> Iterator[tuple[Steps, Sent]]:
        """These messages, each with all steps up to its own."""
        taken, cut = steps(old, new, shape, self.mesh), old
        for k, step in enumerate(taken, start=1):
            sent = self.moving(step, cut, bytes / prod(counts(step.cut, self.mesh)))
            cut = step.cut
            if sent is not None:
                yield taken[:k], sent


def cut_of_layout(layout: Layout, rank: int, mesh: Mesh) -> Cut:
    """The cut of a tensor of a rank that lies so; axes of one device cut nothing."""
    axes = [*zip(mesh.axes, layout, strict=True)]
    return tuple([tuple([a.name for a, d in axes if d == dim and a.size > 1]) for dim in range(rank)])


def seconds(sent: Sequence[Sent]) -> float:
    """How long collectives take, one after another."""
    return sum(s.seconds for s in sent)
