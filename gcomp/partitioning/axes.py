"""Parts of a mesh's axes, and shardings of factors: what propagation computes with.

A part of an axis is `Part(name, before, size)`: `size` parts along an axis of which `before` parts are major to these.
Whole axes are parts as well, so that nothing has to tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import NamedTuple

from gcomp.dims import Size
from gcomp.partitioning.rule import Mapped
from gcomp.sharding import AxisRef, DimensionSharding, Mesh, Sharding, SubAxis


class Part(NamedTuple):
    """A part of an axis."""

    name: str
    before: int
    size: int

    @property
    def after(self) -> int:
        """How many parts are major to what is minor to it."""
        return self.before * self.size

    def overlaps(self, other: Part) -> bool:
        """Whether two parts have a part in common."""
        own = self.before < other.after and other.before < self.after
        return self.name == other.name and (own or self == other)  # an axis of one device has no part

    def contains(self, other: Part) -> bool:
        """Whether the other is a part of this one."""
        return self.name == other.name and self.before <= other.before and other.after <= self.after

    def begins(self, other: Part) -> bool:
        """Whether this is the other, or a major part of it."""
        return self.name == other.name and self.before == other.before and other.size % self.size == 0

    def without(self, other: Part) -> Part | None:
        """The greatest major part that has nothing in common with the other."""
        if not self.overlaps(other):
            return self
        if other.before <= self.before or other.before % self.before:
            return None
        return Part(self.name, self.before, other.before // self.before)


Parts = tuple[Part, ...]
"""What cuts a dimension or a factor, the major one first."""


def without_all(part: Part | None, others: Iterable[Part]) -> Part | None:
    """The greatest major part that has nothing in common with any other."""
    for other in others:
        part = None if part is None else part.without(other)
    return part


def parts_of(axes: Sequence[AxisRef], mesh: Mesh) -> Parts:
    """References to axes of a mesh as parts."""
    return tuple([Part(a.name, 1 if a.part is None else a.part.pre_size, a.size(mesh)) for a in axes])


def axes_of(parts: Iterable[Part], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Parts as references to axes of a mesh."""
    whole = {axis.name: axis.size for axis in mesh.axes}
    return tuple([AxisRef(p.name, None if p.size == whole[p.name] else SubAxis(p.before, p.size)) for p in parts])


def merged(parts: Iterable[Part]) -> Parts:
    """Parts, with neighbours that are one part written as one."""
    found: list[Part] = []
    for part in parts:
        if found and found[-1].name == part.name and found[-1].after == part.before:
            part = Part(part.name, found[-1].before, found.pop().size * part.size)
        found.append(part)
    return tuple(found)


# ---- factors of one tensor ------------------------------------------------------------------------------------------


@dataclass
class Cut:
    """What cuts one factor of a tensor, and whether more may."""

    parts: Parts = ()
    is_closed: bool = False
    is_minor: bool = True
    overflow: Parts = ()
    """Axes that do not divide what is left of the factor: nothing minor to it can be cut."""


@dataclass
class Lying:
    """How a tensor lies on a mesh, factor by factor."""

    cuts: dict[int, Cut] = field(default_factory=dict[int, Cut])
    replicated: Parts = ()

    @staticmethod
    def of(dims: Mapped, sharding: Sharding | None, sizes: Sequence[Size], mesh: Mesh) -> Lying:
        """The sharding of a tensor, whose axes are dealt out to the factors of each dimension, the major one first."""
        found = Lying(replicated=() if sharding is None else parts_of(sharding.replicated, mesh))
        for d, factors in enumerate(dims):
            said = None if sharding is None else sharding.dimensions[d]
            rest = [] if said is None else [*parts_of(said.axes, mesh)]
            closed, overflown = said is not None and said.is_closed, False
            for f in factors:
                cut = found.cuts[f] = Cut(is_closed=closed or overflown, is_minor=f == factors[-1])
                if overflown:
                    continue
                if cut.is_minor:
                    cut.parts, rest = merged(rest), []
                    continue
                cut.parts, left = _take(rest, sizes[f])
                if left != 1 and rest:
                    cut.overflow, rest, overflown = merged(rest), [], True
        return found

    def sharding(self, dims: Mapped, sizes: Sequence[Size], mesh: Mesh, name: str | Mesh) -> Sharding:
        """The sharding of the tensor: what is minor to a factor that is not cut into single indices stays whole."""
        found: list[DimensionSharding] = []
        for factors in dims:
            parts, closed = list[Part](), False
            for f in factors:
                cut = self.cuts[f]
                closed |= cut.is_closed
                parts += [*cut.parts, *cut.overflow]
                if cut.overflow or prod(p.size for p in cut.parts) != sizes[f]:
                    break
            found.append(DimensionSharding(axes_of(merged(parts), mesh), closed))
        return Sharding(name, tuple(found), axes_of(self.replicated, mesh))


def _take(rest: list[Part], size: Size) -> tuple[Parts, Size]:
    """What of these parts cuts a factor of this size, and what is left of the factor; they are taken away."""
    taken: list[Part] = []
    while rest and isinstance(size, int):
        first = rest[0]
        common = gcd(size, first.size)
        if common == 1 and first.size != 1:
            break
        taken.append(Part(first.name, first.before, common))
        size //= common
        rest[:1] = [] if common == first.size else [Part(first.name, first.before * common, first.size // common)]
    return tuple(taken), size


# ---- factors of all tensors of an op --------------------------------------------------------------------------------


def common_parts(old: Parts, new: Parts, grow: bool) -> tuple[Parts, bool]:
    """The parts that two factors agree on, and those that one has beyond the other; whether more may be added.

    If it may not `grow`, nothing of `new` is added to `old`.
    """
    found: list[Part] = []
    for i, (a, b) in enumerate(zip(old, new, strict=False)):
        if a == b:
            found.append(a)
        elif b.begins(a):
            if i + 1 < len(new):
                return (*found, b), False
            found.append(a)
        elif a.begins(b):
            if not grow or i + 1 < len(old):
                return (*found, a), False
            found.append(b)
        else:
            return tuple(found), False
    return (*found, *old[len(new) :], *(new[len(old) :] if grow else ())), grow


def truncated(parts: Parts, allowed: Callable[[Part, int], Part | None]) -> Parts:
    """Parts up to the first that is not allowed whole; `allowed` gets a part and the number of pieces before it."""
    before = 1
    for i, part in enumerate(parts):
        kept = allowed(part, before)
        if kept != part:
            return parts[:i] if kept is None else (*parts[:i], kept)
        before *= part.size
    return parts
