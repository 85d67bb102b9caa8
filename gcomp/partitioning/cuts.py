"""Cuts of tensors along axes of a mesh, and the steps from one to another, as devices take them.

A cut says for each dimension which axes cut it, the major one first. `steps` is what a plan pays for, and what a
partitioned program states: one home for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from math import prod
from typing import NamedTuple

from gcomp.dims import Size, exact_div
from gcomp.sharding import Mesh, Sharding

Cut = tuple[tuple[str, ...], ...]


class Move(StrEnum):
    """What devices do to get a tensor into another cut; all but slices send."""

    SLICE = "slice"
    ALL_TO_ALL = "all_to_all"
    ALL_GATHER = "all_gather"
    PERMUTE = "collective_permute"


class Step(NamedTuple):
    """One move along an axis: from a dimension that it cuts, to one that it does (None: it cuts none). `cut` is how the
    tensor lies after it. A permutation moves whole parts, where the order of a dimension's axes changes."""

    move: Move
    axis: str
    source: int | None
    target: int | None
    cut: Cut


def uncut(rank: int) -> Cut:
    """The cut of a tensor that is whole on each device."""
    return ((),) * rank


def cut_of(sharding: Sharding) -> Cut:
    """The cut that a sharding says; open dimensions are cut no further. ValueError for parts of axes."""
    if any(axis.part is not None for axis in sharding.axes()):
        raise ValueError(f"{sharding.text()} has parts of axes")
    return tuple([tuple([axis.name for axis in d.axes]) for d in sharding.dimensions])


def counts(cut: Cut, mesh: Mesh) -> list[int]:
    """Into how many parts each dimension is cut."""
    return [prod(mesh.axis_size(a) for a in axes) for axes in cut]


def part_shape(shape: Sequence[Size], cut: Cut, mesh: Mesh) -> list[Size] | None:
    """The shape of each part; None where they are not of one size, or empty."""
    found: list[Size] = []
    for size, count in zip(shape, counts(cut, mesh), strict=True):
        part = size if count == 1 else exact_div(size, count) if isinstance(size, int) and size else None
        if part is None:
            return None
        found.append(part)
    return found


def _places(cut: Cut) -> dict[str, int]:
    return {axis: dim for dim, axes in enumerate(cut) for axis in axes}


@lru_cache(1 << 16)
def steps(old: Cut, new: Cut, shape: tuple[Size, ...], mesh: Mesh) -> tuple[Step, ...]:
    """The steps from one cut of a tensor to another, both of which cut it evenly: what is cut further is cut first, as
    far as dimensions have room, and what is gathered is gathered last.

    An axis leaves a dimension, and comes to one, as its minor one: permutations bring it there, and to its place.
    """
    return tuple(_Way(old, new, shape, mesh).found())


class _Way:
    """From one cut to another, step by step."""

    def __init__(self, old: Cut, new: Cut, shape: tuple[Size, ...], mesh: Mesh) -> None:
        self.now, self.new, self.shape, self.mesh = [list(axes) for axes in old], new, shape, mesh
        before, self.after = _places(old), _places(new)
        self.coming = [a for a in mesh.names if a in self.after and a not in before]
        self.moving = [a for a in mesh.names if a in before and a in self.after and before[a] != self.after[a]]
        self.going = [a for a in mesh.names if a in before and a not in self.after]

    def found(self) -> Iterator[Step]:
        """The steps. Where axes wait for each other's dimensions, one is gathered, and cut again later."""
        while self.coming or self.moving or self.going:
            if (axis := self._ready(self.coming)) is not None:
                self.coming.remove(axis)
                self.now[self.after[axis]].append(axis)
                yield Step(Move.SLICE, axis, None, self.after[axis], self._cut())
            elif (axis := self._ready(self.moving)) is not None:
                self.moving.remove(axis)
                yield from self._leave(axis, Move.ALL_TO_ALL)
            elif self.going:
                axis = self._last(self.going)
                self.going.remove(axis)
                yield from self._leave(axis, Move.ALL_GATHER)
            else:
                axis = self._last(self.moving)
                self.moving.remove(axis)
                self.coming.append(axis)
                yield from self._leave(axis, Move.ALL_GATHER)
        for dim, axes in enumerate(self.new):
            if tuple(self.now[dim]) != axes:
                self.now[dim] = [*axes]
                yield Step(Move.PERMUTE, axes[-1], dim, dim, self._cut())

    def _cut(self) -> Cut:
        return tuple(map(tuple, self.now))

    def _dim(self, axis: str) -> int:
        return next(dim for dim, axes in enumerate(self.now) if axis in axes)

    def _ready(self, axes: Sequence[str]) -> str | None:
        """An axis for which its new dimension has room; one that is the minor one of the dimension that it leaves."""
        room = [a for a in axes if self._fits(a)]
        return self._last(room) if room else None

    def _last(self, axes: Sequence[str]) -> str:
        return next((a for a in axes if any(own[-1:] == [a] for own in self.now)), axes[0])

    def _fits(self, axis: str) -> bool:
        dim = self.after[axis]
        size, count = self.shape[dim], prod(map(self.mesh.axis_size, (*self.now[dim], axis)))
        return isinstance(size, int) and size % count == 0

    def _leave(self, axis: str, move: Move) -> Iterator[Step]:
        """Take an axis away from its dimension, to its new one if it moves."""
        dim = self._dim(axis)
        own = self.now[dim]
        if own[-1] != axis:
            own.remove(axis)
            own.append(axis)
            yield Step(Move.PERMUTE, axis, dim, dim, self._cut())
        own.pop()
        target = self.after[axis] if move is Move.ALL_TO_ALL else None
        if target is not None:
            self.now[target].append(axis)
        yield Step(move, axis, dim, target, self._cut())


__all__ = ["Cut", "Move", "Step", "counts", "cut_of", "part_shape", "steps", "uncut"]
