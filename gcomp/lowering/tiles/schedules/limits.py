"""The first few elements of long rows in order: what a row's limit leaves of it is sorted.

A row is looked at in columns of elements that lie apart, some more than are kept. Of each column the first element in
order is found, and of these the last one that is kept: as many elements of the row come before it, or are it. So
elements that come after it are left out; of those that are equal to it only so many are needed. Of 25200 random numbers
of which 300 are kept some 460 are left. One program does a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import d, linear
from gcomp.dims import Ranges, product
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import ELEMENT_TYPES, dtype_text
from gcomp.lowering.tiles.elements.bits import pack
from gcomp.lowering.tiles.schedules.kernel import KernelWriter, Scheduled, Scratch, is_covered
from gcomp.lowering.tiles.schedules.merging import Runs
from gcomp.lowering.tiles.schedules.ordering import LANES, Problem, Tiles
from gcomp.lowering.tiles.tile import IN_ORDER

MOST_COLUMNS = 2048
"""Columns of a row, at most: their first elements are sorted, too."""
LEAST_TURNS = 4
"""Elements of a column, at least."""
LOOKED = 4 * LANES
"""Elements that are compared with the limit at a time."""


def columns_of(problem: Problem, ranges: Ranges) -> int:
    """Columns of a row: half as many more as elements are kept, in whole vectors; 0 where many elements are kept, or
    rows may be short."""
    low, high = ranges.bounds(problem.length)
    if not isinstance(problem.kept, int) or problem.kept == 0 or low is None or high is None:
        return 0
    least = -(-3 * problem.kept // (2 * LANES)) * LANES
    columns = least if least <= 2 * LANES else -(-least // LOOKED) * LOOKED
    return columns if columns <= MOST_COLUMNS and low >= LEAST_TURNS * columns else 0


def limiting(
    launch: LaunchOp, problem: Problem, wanted: Sequence[int], name: str, ranges: Ranges
) -> Scheduled | None:  # fmt: skip
    """The kernel that sorts what a limit leaves of rows; None where a limit leaves too much."""
    columns, longest = columns_of(problem, ranges), ranges.bounds(problem.length)[1]
    if not columns or longest is None:
        return None
    return _Limiting(launch, problem, wanted, name, ranges, columns, longest).run()


class _Limiting:
    def __init__(
        self, launch: LaunchOp, problem: Problem, wanted: Sequence[int], name: str, ranges: Ranges, columns: int,
        longest: int,
    ) -> None:  # fmt: skip
        self.launch, self.problem, self.keys, self.wanted = launch, problem, problem.keys, wanted
        self.columns, self.longest = columns, longest
        self.writer = KernelWriter(launch, name, ranges)
        self.b, self.frame = self.writer.b, self.writer.frame()
        kinds = [ELEMENT_TYPES[kind] for kind in (*self.keys.kinds, dtype_text(self.b.index))]
        # Runs are read from one half, and written to the other.
        self.scratch = tuple([Scratch(kind, 2 * product(problem.shape)) for kind in kinds])
        self.buffers = [self.writer.scratch(n, kind, "inout") for n, kind in enumerate(kinds)]
        """The keys of what the limit leaves, and where in the row these elements are."""

    def run(self) -> Scheduled:
        """One kernel: a program for each row."""
        b, frame, problem = self.b, self.frame, self.problem
        frame.coordinate(problem.rows, b.program_id(0))
        self.lanes = frame.declare(problem.length)
        self.elements = self.writer.elements(frame)
        self.length, self.kept = frame.position(problem.length), frame.position(problem.kept)
        begin = b.multiply(b.program_id(0), self.length)
        other = b.add(begin, frame.position(product(problem.shape)))
        count = self._filter(begin, self._limit())
        runs = Runs(b, self.keys.before, len(self.keys.kinds), self.buffers, count, self.kept)
        self._write(runs.sort(begin, other, self.longest))
        step = self.writer.step((problem.rows,))
        step.kernel.attributes[IN_ORDER] = UnitAttr()
        return Scheduled((step,), self.scratch, form="what a limit leaves of rows, sorted")

    def _keys_at(self, place: SSAValue, *, partial: bool) -> Tiles:
        """The keys of elements of the row."""
        frame, problem = self.frame, self.problem
        frame.bind(self.lanes, place, partial=partial)
        access = frame.access(problem.shape, problem.indices(d(self.lanes)))
        return self.keys.of(self.b, [self.elements(problem.operands[n], access) for n in self.keys.operands])

    def _limit(self) -> Tiles:
        """The keys of an element of the row that no more than those that are kept come before."""
        b, before, columns = self.b, self.keys.before, self.columns
        firsts = [b.memory(kind, 2 * columns) for kind in self.keys.kinds]
        beside = next(n for n in (4 * LANES, 2 * LANES, LANES) if columns % n == 0)
        whole = b.multiply(b.apply("divide_positive", self.length, b.position(columns)), b.position(columns))

        def some(first: SSAValue, _: Tiles) -> Tiles:
            """The first elements of some columns."""
            lanes = b.iota(beside, 0, 1)

            def next_row(at: SSAValue, best: Tiles, *, partial: bool) -> Tiles:
                with self.elements.scope():
                    found = self._keys_at(b.add(at, lanes), partial=partial)
                    comes = b.both(before(b, found, best), self.frame.mask((), {d(self.lanes).text}))
                assert comes is not None
                return [b.apply("select", comes, x, y) for x, y in zip(found, best, strict=True)]

            with self.elements.scope():
                start = self._keys_at(b.add(first, lanes), partial=False)
            best = b.loop(b.add(first, b.position(columns)), whole, columns, start, partial(next_row, partial=False))
            if not is_covered(self.frame, self.problem.length, columns):
                best = next_row(b.add(first, whole), best, partial=True)
            for buffer, value in zip(firsts, best, strict=True):
                b.store(buffer, b.add(first, lanes), value, None)
            return []

        b.loop(b.position(0), b.position(columns), beside, [], some)
        runs = Runs(b, before, len(firsts), firsts, b.position(columns), self.kept)
        found = runs.sort(b.position(0), b.position(columns), columns)
        last = b.add(found, b.apply("subtract", self.kept, b.position(1)))
        return [b.load(buffer, last, None) for buffer in firsts]

    def _filter(self, begin: SSAValue, limit: Tiles) -> SSAValue:
        """Write what does not come after the limit to memory, in the row's order; how many elements these are."""
        b, frame, before = self.b, self.frame, self.keys.before

        def needed(at: SSAValue, count: int, ties: SSAValue) -> tuple[Tiles, SSAValue, SSAValue]:
            """The keys of elements, which of them are needed, and which of these are equal to the limit."""
            found = self._keys_at(
                b.add(at, b.iota(count, 0, 1)), partial=not is_covered(frame, self.problem.length, count)
            )
            comes, stays = (b.broadcast(m, (count,)) for m in (before(b, found, limit), before(b, limit, found)))
            equal = b.apply("not", b.apply("or", comes, stays))
            equal = b.apply("and", equal, b.broadcast(b.apply("lt", ties, self.kept), (count,)))
            there = frame.mask((), {d(self.lanes).text})
            mask = b.both(b.apply("or", comes, equal), there)
            assert mask is not None
            return found, mask, equal

        def look(at: SSAValue, carried: Tiles, *, size: int = LOOKED) -> Tiles:
            """Look for what is needed in a block, and in parts of it where there is some."""
            with self.elements.scope():
                _, mask, _ = needed(at, size, carried[1])
            (some,) = b.reduce([mask], 0, lambda x, y: [b.apply("or", x[0], y[0])])
            stop = b.apply("minimum", self.length, b.add(at, b.position(size)))
            stop = b.add(at, b.multiply(b.cast(some, b.index), b.apply("subtract", stop, at)))
            inner = append if size == LANES else partial(look, size=LANES)
            return b.loop(at, stop, LANES, carried, inner, rolled=True)

        def append(at: SSAValue, carried: Tiles) -> Tiles:
            with self.elements.scope():
                found, mask, equal = needed(at, LANES, carried[1])
                own = [*found, frame.position(d(self.lanes))]
            numbers = [b.cast(m, "i32") for m in (mask, b.apply("and", mask, equal))]
            (after,) = b.scan(numbers[:1], 0, lambda x, y: [b.add(x[0], y[0])], reverse=False)
            before_it = b.apply("subtract", b.cast(after, b.index), b.position(1))
            place = b.add(b.add(begin, carried[0]), before_it)
            for buffer, value in zip(self.buffers, own, strict=True):
                b.store(buffer, place, value, mask)
            sums = b.reduce(numbers, 0, lambda x, y: [b.add(p, q) for p, q in zip(x, y, strict=True)])
            return [b.add(n, b.cast(b.reshape(more, ()), b.index)) for n, more in zip(carried, sums, strict=True)]

        zero = b.position(0)
        filled, _ = b.loop(zero, self.length, LOOKED, [zero, zero], look)
        frame.tiles[self.lanes] = None
        return filled

    def _write(self, source: SSAValue) -> None:
        """Write the first elements, whose keys and places begin at `source`."""
        b, frame, problem, writer = self.b, self.frame, self.problem, self.writer
        place = frame.declare(problem.kept)

        def some(at: SSAValue, _: Tiles) -> Tiles:
            along = b.add(at, b.iota(LANES, 0, 1))
            frame.bind(place, along, partial=not is_covered(frame, problem.kept, LANES))
            mask = frame.mask((), {d(place).text})
            target = frame.position(linear(problem.kept_shape, problem.indices(0 if problem.kept == 1 else d(place))))
            found = b.load(self.buffers[-1], b.add(source, along), mask)
            # Lanes without an element are 0, which is one of the row.
            frame.bind(self.lanes, found)
            access = frame.access(problem.shape, problem.indices(d(self.lanes)))
            with self.elements.scope():
                for j, n in enumerate(self.wanted):
                    is_place = n == len(problem.operands)
                    value = b.cast(found, "i32") if is_place else self.elements(problem.operands[n], access)
                    value = pack(b, value, dtype_text(self.launch.results[j].type))
                    b.store(writer.outputs[j], target, value, mask)
            return []

        b.loop(b.position(0), self.kept, LANES, [], some)
        frame.tiles[self.lanes] = None


__all__ = ["columns_of", "limiting"]
