"""Meshes: named axes over devices, and references to axes or to parts of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Axis(NamedTuple):
    """One axis of a mesh, and how many devices lie along it."""

    name: str
    size: int


class SubAxis(NamedTuple):
    """A part of an axis: `(2)4` has size 4, and 2 is the product of the sizes of the parts that are major to it."""

    pre_size: int
    size: int

    @property
    def next_pre_size(self) -> int:
        """The pre-size of the part that is minor to it."""
        return self.pre_size * self.size


class AxisRef(NamedTuple):
    """A reference to an axis of a mesh, or to a part of one."""

    name: str
    part: SubAxis | None = None

    def size(self, mesh: Mesh) -> int:
        """How many pieces it cuts into."""
        return mesh.axis_size(self.name) if self.part is None else self.part.size

    def position(self, mesh: Mesh, coordinate: int) -> int:
        """Which of those pieces a device holds that has this coordinate along the axis."""
        if self.part is None:
            return coordinate
        return coordinate // (mesh.axis_size(self.name) // self.part.next_pre_size) % self.part.size

    def text(self) -> str:
        """Shardy's text: `"a"`, `"a":(2)4`."""
        return f'"{self.name}"' + ("" if self.part is None else f":({self.part.pre_size}){self.part.size}")

    def overlaps(self, other: AxisRef) -> bool:
        """Whether two references share a part of an axis."""
        if self.name != other.name:
            return False
        if self.part is None or other.part is None:
            return True
        return self.part.pre_size < other.part.next_pre_size and other.part.pre_size < self.part.next_pre_size


class Mesh(NamedTuple):
    """Axes, the first the most major, and the devices that lie along them in this order.

    Without `device_ids`, they are 0, 1, 2, ... A mesh without axes is empty (a placeholder), or names one device:
    values with a sharding on it are on that device alone (a *maximal* mesh).
    """

    axes: tuple[Axis, ...]
    device_ids: tuple[int, ...] = ()

    @staticmethod
    def of(sizes: Iterable[tuple[str, int]], device_ids: Sequence[int] = ()) -> Mesh:
        """The mesh of axes and their sizes; device ids in plain order are left out, as in Shardy."""
        axes = tuple(Axis(name, size) for name, size in sizes)
        ids = tuple(device_ids)
        return Mesh(axes, () if axes and ids == tuple(range(math.prod(a.size for a in axes))) else ids)

    @property
    def size(self) -> int:
        """How many devices there are."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def is_maximal(self) -> bool:
        """Whether it names one device."""
        return not self.axes and len(self.device_ids) == 1

    @property
    def names(self) -> tuple[str, ...]:
        """The axes' names, the most major first."""
        return tuple(axis.name for axis in self.axes)

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices' ids, in the order in which they lie along the axes."""
        return self.device_ids or tuple(range(self.size))

    def axis_size(self, name: str) -> int:
        """The size of an axis. KeyError where there is none of that name."""
        for axis in self.axes:
            if axis.name == name:
                return axis.size
        raise KeyError(name)

    def coordinates(self, device: int) -> dict[str, int]:
        """Where a device lies along each axis. ValueError for one that is not in the mesh."""
        place = self.devices.index(device)
        found: dict[str, int] = {}
        for axis in reversed(self.axes):
            place, found[axis.name] = divmod(place, axis.size)
        return found

    def groups(self, names: Iterable[str]) -> tuple[tuple[int, ...], ...]:
        """The devices in groups that differ only along these axes, in the order in which the axes are named."""
        along, groups = tuple(names), dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]]()
        for device in self.devices:
            at = self.coordinates(device)
            rest = tuple(at[axis.name] for axis in self.axes if axis.name not in along)
            groups.setdefault(rest, []).append((tuple(at[name] for name in along), device))
        return tuple(tuple(device for _, device in sorted(group)) for group in groups.values())

    def text(self) -> str:
        """Shardy's text: `<["a"=2, "b"=4], device_ids=[7, 6, ...]>`."""
        axes = ", ".join(f'"{axis.name}"={axis.size}' for axis in self.axes)
        ids = f", device_ids=[{', '.join(map(str, self.device_ids))}]" if self.device_ids else ""
        return f"<[{axes}]{ids}>"


__all__ = ["Axis", "AxisRef", "Mesh", "SubAxis"]
