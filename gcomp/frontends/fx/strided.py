"""`as_strided`: what lies at given places of a tensor's memory, which is that of the tensor of which it is a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.layouts import is_placed, owner_of
from gcomp.frontends.fx.registry import Results, imports
from gcomp.frontends.fx.values import size_of
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import take

Places = NDArray[np.int64]


@imports("as_strided")
def as_strided(ctx: NodeContext) -> Results:
    """What lies at strides from a start in the memory of a tensor, which may be a view of a greater one: elements that
    overlap, repeat or are left out."""
    b, fake, sizes, strides = ctx.b, ctx.fake("self"), ctx.arg("size"), ctx.arg("stride")
    start: Size = ctx.arg("storage_offset", size_of(fake.storage_offset()))
    source = _Source(ctx, owner_of(ctx.node))
    if _is_dense(sizes, strides) and (row := source.stretch(start, dims.product(sizes))) is not None:
        return b.reshape(row, sizes)
    if not source.is_static or not all(isinstance(n, int) for n in (*sizes, *strides, start)):
        ctx.unsupported("its sizes are symbolic", "give the dimensions fixed sizes")
    places = _places(sizes, strides, cast(int, start))
    return b.reshape(source.elements(places), sizes) if places.size else b.full(sizes, 0, ctx.dtype())


class _Source:
    """The tensor that has the memory which a node reads."""

    def __init__(self, ctx: NodeContext, owner: Any) -> None:
        self.ctx, self.owner, self.is_placed = ctx, owner, is_placed(ctx.node, owner)
        fake = owner.meta["val"]
        self.shape, self.strides = ([size_of(n) for n in numbers] for numbers in (fake.shape, fake.stride()))
        self.offset = size_of(fake.storage_offset())
        self.is_static = all(isinstance(n, int) for n in (*self.shape, *self.strides, self.offset))
        memory = ctx.importer.memory
        self.memory = memory if memory is not None and memory.has(owner) else None

    def stretch(self, start: Size, count: Size) -> SSAValue | None:
        """So many elements from a place on; None where they are not known to follow one another in the tensor."""
        if self.is_placed and self.memory is not None:
            return self.memory.read(self.owner, start, count, is_placed=True)
        first, total = start - self.offset, dims.product(self.shape)
        inside = self.ctx.ranges.less_equal(0, first) and self.ctx.ranges.less_equal(first + count, total)
        if not inside or not _is_dense(self.shape, self.strides):
            return None
        return self.ctx.b.slice_axis(self._row(range(len(self.shape))), 0, first, first + count)

    def elements(self, places: Places) -> SSAValue:
        """The elements at places of the memory, as a row. The tensor is static."""
        first, last = int(places.min()), int(places.max())
        if not (self.is_placed and self.memory is not None):
            order = sorted(range(len(self.shape)), key=lambda i: (-self.strides[i], -self.shape[i]))
            found = self._numbers(places - cast(int, self.offset), order)
            if found is not None:
                return _pick(self.ctx.b, self._row(order), found)
        if self.memory is None:
            self.ctx.unsupported(
                f"it reads elements {first} to {last} of memory of which {self.owner.name} is only a part",
                "index the tensor that has all of it, or call clone() first",
            )
        start = first if self.is_placed else first - self.offset
        row = self.memory.read(self.owner, start, last + 1 - first, is_placed=self.is_placed)
        return _pick(self.ctx.b, row, places - first)

    def _row(self, order: Sequence[int]) -> SSAValue:
        """The tensor's elements, with its dimensions in some order."""
        b = self.ctx.b
        return b.reshape(b.transpose(self.ctx.importer.read(self.owner), order), (dims.product(self.shape),))

    def _numbers(self, rest: Places, order: Sequence[int]) -> Places | None:
        """Which elements of the tensor lie at distances from its first one, counted with its dimensions in order of
        strides; None where one of them is not its own, or may not be."""
        if 0 in self.shape:
            return None
        found: Places = np.zeros_like(rest)
        for i in order:
            size, stride = cast(int, self.shape[i]), cast(int, self.strides[i])
            at = np.clip(rest // stride, 0, size - 1) if stride else np.zeros_like(rest)
            rest, found = rest - at * stride, found * size + at
        return None if rest.any() else found


def _pick(b: Builder, row: SSAValue, numbers: Places) -> SSAValue:
    first = int(numbers[0])
    if np.array_equal(numbers, np.arange(first, first + numbers.size)):
        return b.slice_axis(row, 0, first, first + numbers.size)
    return take(b, row, b.constant(numbers), 0)


def _places(sizes: Sequence[int], strides: Sequence[int], start: int) -> Places:
    """Where the elements of a strided view lie in memory, in row-major order."""
    places: Places = np.array([start], np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        places = np.add.outer(places, np.arange(size) * stride).ravel()
    return places


def _is_dense(sizes: Sequence[Size], strides: Sequence[Size]) -> bool:
    """Whether elements follow one another in row-major order."""
    return all(strides[i] == dims.product(sizes[i + 1 :]) for i in range(len(sizes)) if sizes[i] != 1)
