"""Runs of sorted elements in memory that one program merges, two at a time, until one is left.

Elements lie in one half of buffers, and are written in order to the other: chunks of `CHUNK` first, which are sorted by
counting how many elements come before each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.schedules.ordering import LANES, Before, Tiles

CHUNK = 4 * LANES
"""Elements that are sorted by counting."""


class Runs:
    """Elements of buffers: the first `keys` of these have what `before` compares. Only the first `kept` of `length`
    elements in order are needed."""

    def __init__(
        self, b: TileBuilder, before: Before, keys: int, buffers: Sequence[SSAValue], length: SSAValue, kept: SSAValue
    ) -> None:
        self.b, self.before, self.keys, self.buffers, self.length, self.kept = b, before, keys, buffers, length, kept

    def sort(self, source: SSAValue, target: SSAValue, most: int) -> SSAValue:
        """Sort elements that begin at `source`, of which there are `most` at most; where they lie then."""
        b, size = self.b, self.b.position(CHUNK)
        chunks = b.apply("divide_positive", b.add(self.length, b.position(CHUNK - 1)), size)
        self._each(chunks, lambda chunk: self._sort_chunk(source, target, b.multiply(chunk, size)))
        return self.merge(size, target, source, (-(-most // CHUNK) - 1).bit_length())

    def merge(self, run: SSAValue, source: SSAValue, target: SSAValue, levels: int) -> SSAValue:
        """Merge sorted runs of a length until one is left, after so many levels at most; where it lies then."""
        b = self.b

        def level(_: SSAValue, carried: Tiles) -> Tiles:
            """Merge all pairs of runs, from where they lie to the other half; nothing where one run is left."""
            run, source, target = carried
            both = b.add(run, run)
            more = b.cast(b.apply("lt", run, self.length), b.index)
            pairs = b.apply("divide_positive", b.add(self.length, b.apply("subtract", both, b.position(1))), both)

            def pair(which: SSAValue) -> None:
                first = b.multiply(which, both)
                rest = b.apply("subtract", self.length, first)
                self._merge(b.add(source, first), b.add(target, first), run, rest)

            self._each(b.multiply(pairs, more), pair)
            is_done = b.apply("ge", run, self.length)
            source, target = b.apply("select", is_done, source, target), b.apply("select", is_done, target, source)
            return [b.apply("select", is_done, run, both), source, target]

        return b.loop(b.position(0), b.position(levels), 1, [run, source, target], level, rolled=True)[1]

    def _sort_chunk(self, source: SSAValue, target: SSAValue, first: SSAValue) -> None:
        """Write a chunk's elements in order: each after those that come before it, of equal ones the earlier."""
        b, zero, lanes, begin = self.b, self.b.position(0), self.b.iota(CHUNK, 0, 1), self.b.add(source, first)
        count = b.apply("minimum", b.position(CHUNK), b.apply("subtract", self.length, first))
        there = b.apply("lt", lanes, count)
        own = [b.load(buffer, b.add(begin, lanes), there) for buffer in self.buffers]

        def look(at: SSAValue, counts: Tiles) -> Tiles:
            other = [b.load(buffer, b.add(begin, at), None) for buffer in self.buffers[: self.keys]]
            earlier = b.apply("not", self.before(b, own[: self.keys], other))
            comes = b.apply("select", b.apply("lt", at, lanes), earlier, self.before(b, other, own[: self.keys]))
            comes = b.apply("and", comes, b.apply("ne", at, lanes))
            return [b.add(counts[0], b.cast(comes, "i32"))]

        (rank,) = b.loop(zero, count, 1, [b.constant(0, "i32", (CHUNK,))], look)
        place = b.add(b.add(target, first), b.cast(rank, b.index))
        for buffer, value in zip(self.buffers, own, strict=True):
            b.store(buffer, place, value, there)

    def _merge(self, source: SSAValue, target: SSAValue, run: SSAValue, left_over: SSAValue) -> None:
        """Merge the run at `source` with the one after it; `left_over` elements begin there."""
        b, zero, one = self.b, self.b.position(0), self.b.position(1)
        most = b.apply("minimum", run, self.kept)
        left = b.apply("minimum", most, left_over)
        right = b.apply("maximum", zero, b.apply("minimum", most, b.apply("subtract", left_over, run)))
        # What is beyond a run is no element of it: the last one is looked at again.
        second = b.apply("select", b.apply("gt", right, zero), b.add(source, run), source)
        lasts = [b.apply("subtract", count, one) for count in (left, b.apply("maximum", right, one))]

        def element_of(at: SSAValue, taken: Tiles) -> Tiles:
            mine, other = (
                [b.load(buffer, b.add(start, b.apply("minimum", k, last)), None) for buffer in self.buffers]
                for start, k, last in zip((source, second), taken, lasts, strict=True)
            )
            # Of equal elements those of the first run come first.
            earlier = b.apply(
                "or", b.apply("ge", taken[0], left), self.before(b, other[: self.keys], mine[: self.keys])
            )
            takes = b.apply("and", b.apply("lt", taken[1], right), earlier)
            for buffer, x, y in zip(self.buffers, other, mine, strict=True):
                b.store(buffer, b.add(target, at), b.apply("select", takes, x, y), None)
            steps = b.apply("select", takes, zero, one), b.apply("select", takes, one, zero)
            return [b.add(k, step) for k, step in zip(taken, steps, strict=True)]

        b.loop(zero, b.apply("minimum", b.add(left, right), self.kept), 1, [zero, zero], element_of)

    def _each(self, count: SSAValue, body: Callable[[SSAValue], None]) -> None:
        """A loop that carries nothing."""

        def turn(at: SSAValue, _: Tiles) -> Tiles:
            body(at)
            return []

        self.b.loop(self.b.position(0), count, 1, [], turn, rolled=True)


__all__ = ["Runs"]
