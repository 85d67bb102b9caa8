"""Shardings: for each dimension of an array, the axes of a mesh along which it is cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from gcomp.sharding.mesh import AxisRef, Mesh


class DimensionSharding(NamedTuple):
    """The axes that cut one dimension, the most major first.

    Propagation may cut an open dimension further; of several shardings, those with a lower priority go first.
    """

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = True
    priority: int | None = None

    def pieces(self, mesh: Mesh) -> int:
        """Into how many pieces the dimension is cut."""
        count = 1
        for axis in self.axes:
            count *= axis.size(mesh)
        return count

    def text(self) -> str:
        """Shardy's text: `{"a", "b":(1)2, ?}p1`."""
        inner = [axis.text() for axis in self.axes] + ([] if self.is_closed else ["?"])
        return f"{{{', '.join(inner)}}}" + ("" if self.priority is None else f"p{self.priority}")


class Sharding(NamedTuple):
    """How an array lies on a mesh, which is named or given: each device holds one piece.

    Along an axis that cuts no dimension all devices hold the same. `replicated` has axes that propagation must leave
    so; along `unreduced` axes, the array is the sum of what the devices hold.
    """

    mesh: str | Mesh
    dimensions: tuple[DimensionSharding, ...]
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()

    @staticmethod
    def of(mesh: str | Mesh, dimensions: Sequence[Sequence[str | AxisRef]]) -> Sharding:
        """The closed sharding of these axes, by name or reference, for each dimension."""
        refs = (tuple(AxisRef(a) if isinstance(a, str) else a for a in axes) for axes in dimensions)
        return Sharding(mesh, tuple(DimensionSharding(axes) for axes in refs))

    @staticmethod
    def open(mesh: str | Mesh, rank: int) -> Sharding:
        """The sharding that says nothing: each dimension may be cut."""
        return Sharding(mesh, (DimensionSharding(is_closed=False),) * rank)

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self.dimensions)

    @property
    def cuts(self) -> bool:
        """Whether any dimension is cut."""
        return any(d.axes for d in self.dimensions)

    def axes(self) -> Iterator[AxisRef]:
        """All references to axes."""
        for dimension in self.dimensions:
            yield from dimension.axes
        yield from self.replicated
        yield from self.unreduced

    def closed(self) -> Sharding:
        """The same cuts, which propagation may not change."""
        return self._replace(dimensions=tuple(d._replace(is_closed=True) for d in self.dimensions))

    def only(self, names: Collection[str]) -> Sharding:
        """The cuts along these axes alone."""
        kept = (tuple(a for a in d.axes if a.name in names) for d in self.dimensions)
        return Sharding(
            self.mesh,
            tuple(d._replace(axes=axes) for d, axes in zip(self.dimensions, kept, strict=True)),
            tuple(a for a in self.replicated if a.name in names),
            tuple(a for a in self.unreduced if a.name in names),
        )

    def text(self) -> str:
        """Shardy's text: `<@mesh, [{"a"}, {?}], replicated={"b"}>`."""
        mesh = f"@{self.mesh}" if isinstance(self.mesh, str) else f"mesh{self.mesh.text()}"
        lists = (("replicated", self.replicated), ("unreduced", self.unreduced))
        rest = "".join(f", {word}={{{', '.join(a.text() for a in axes)}}}" for word, axes in lists if axes)
        return f"<{mesh}, [{', '.join(d.text() for d in self.dimensions)}]{rest}>"


__all__ = ["DimensionSharding", "Sharding"]
