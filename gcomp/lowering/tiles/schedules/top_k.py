"""The first few elements of long rows in order: one program for each row inserts what comes before the last one kept.

A block of elements of which none does costs one comparison each. Of random rows of n elements some k log(n / k) are
inserted.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import d
from gcomp.dims import Ranges, product
from gcomp.ir.kernel import LaunchOp
from gcomp.lowering.tiles.schedules.kernel import KernelWriter, Scratch, Step, is_covered
from gcomp.lowering.tiles.schedules.ordering import LANES, Problem, Tiles, write_kept
from gcomp.lowering.tiles.tile import IN_ORDER

PART = 4
"""Rows have at least so many times the elements that are kept."""


def is_selected(problem: Problem, ranges: Ranges, most: int) -> bool:
    """Whether few elements of rows are kept, and no more than `most`."""
    low = ranges.bounds(problem.length)[0]
    if not isinstance(problem.kept, int) or not 0 < problem.kept <= most or low is None:
        return False
    return low >= PART * problem.kept or not isinstance(problem.length, int)


class Selecting:
    """The kernel that keeps the first elements of a row in scratch memory, in order, and writes them at the end."""

    def __init__(self, launch: LaunchOp, problem: Problem, wanted: Sequence[int], name: str, ranges: Ranges) -> None:
        self.problem, self.wanted = problem, wanted
        kinds = problem.scratch_types(wanted)
        self.scratch = tuple([Scratch(kind, product([problem.rows, problem.kept])) for kind in kinds])
        self.writer = KernelWriter(launch, name, ranges)
        self.b, self.frame = self.writer.b, self.writer.frame()
        self.keys = len(problem.operands)
        self.buffers = [self.writer.scratch(n, kind, "inout") for n, kind in enumerate(kinds)]

    def run(self) -> Step:
        """The kernel: one program for each row."""
        b, frame, problem = self.b, self.frame, self.problem
        frame.coordinate(problem.rows, b.program_id(0))
        self.lanes, self.one = frame.declare(problem.length), frame.declare(problem.length)
        self.elements = self.writer.elements(frame)
        self.length, self.kept = frame.position(problem.length), frame.position(problem.kept)
        self.begin = b.multiply(b.program_id(0), self.kept)
        zero = b.position(0)
        # Until there are as many as are kept, every element comes before the last one, whatever this is.
        last = [b.cast(v, buffer.type.element) for v, buffer in zip(self._at(zero), self.buffers, strict=False)]  # type: ignore[attr-defined]
        b.loop(zero, self.length, LANES, [zero, *last], self._block)
        write_kept(self.writer, frame, problem, self.wanted, self.buffers, self.begin)
        step = self.writer.step((problem.rows,))
        step.kernel.attributes[IN_ORDER] = UnitAttr()
        return step

    def _at(self, place: SSAValue) -> Tiles:
        """An element of each operand."""
        self.frame.bind(self.one, place)
        with self.elements.scope():
            return self._operands(self.one)

    def _operands(self, coordinate: int) -> Tiles:
        frame, problem = self.frame, self.problem
        place = 0 if problem.length == 1 else d(coordinate)
        return [self.elements(v, frame.access(problem.shape, problem.indices(place))) for v in problem.operands]

    def _goes_in(self, found: Tiles, carried: Tiles) -> SSAValue:
        """Whether elements come before the last one that is kept, or there is none yet."""
        b, (filled, *last) = self.b, carried
        return b.apply("or", self.problem.before(b, found, last), b.apply("lt", filled, self.kept))

    def _block(self, at: SSAValue, carried: Tiles) -> Tiles:
        """Look through a block, if there is anything in it."""
        b, frame = self.b, self.frame
        frame.bind(
            self.lanes, b.add(at, b.iota(LANES, 0, 1)), partial=not is_covered(frame, self.problem.length, LANES)
        )
        with self.elements.scope():
            comes = b.broadcast(self._goes_in(self._operands(self.lanes), carried), (LANES,))
        comes = b.both(comes, frame.mask((), {d(self.lanes).text}))
        assert comes is not None
        frame.tiles[self.lanes] = None
        (some,) = b.reduce([b.cast(comes, "i32")], 0, lambda x, y: [b.apply("maximum", x[0], y[0])])
        stop = b.apply("minimum", self.length, b.add(at, b.position(LANES)))
        stop = b.add(at, b.multiply(b.cast(some, b.index), b.apply("subtract", stop, at)))
        return b.loop(at, stop, 1, carried, self._element)

    def _element(self, at: SSAValue, carried: Tiles) -> Tiles:
        """Insert an element, if it comes before the last one."""
        b = self.b
        found = self._at(at)
        goes = b.cast(self._goes_in(found, carried), b.index)
        own = [*found, *([b.cast(at, "i32")] if len(self.buffers) > self.keys else [])]
        return b.loop(b.position(0), goes, 1, carried, lambda _, kept: self._insert(own, kept[0]))

    def _insert(self, own: Tiles, filled: SSAValue) -> Tiles:
        """Put an element in its place among those that are kept, and move those after it on."""
        b, one, lanes = self.b, self.b.position(1), self.b.position(LANES)

        def count(at: SSAValue, counted: Tiles) -> Tiles:
            place = b.add(at, b.iota(LANES, 0, 1))
            there = b.apply("lt", place, filled)
            others = [b.load(buffer, b.add(self.begin, place), there) for buffer in self.buffers[: self.keys]]
            # Of equal elements those that were kept first come first.
            stays = b.both(b.apply("not", self.problem.before(b, own, others)), there)
            assert stays is not None
            return [b.add(counted[0], b.cast(stays, "i32"))]

        (counts,) = b.loop(b.position(0), filled, LANES, [b.constant(0, "i32", (LANES,))], count)
        (rank,) = b.reduce([counts], 0, lambda x, y: [b.add(x[0], y[0])])
        rank = b.cast(rank, b.index)
        after = b.apply("minimum", b.add(filled, one), self.kept)
        blocks = b.apply("divide_positive", b.add(after, b.position(LANES - 1)), lanes)
        first = b.apply("divide_positive", rank, lanes)

        def move(turn: SSAValue, _: Tiles) -> Tiles:
            block = b.apply("subtract", b.apply("subtract", blocks, one), turn)
            place = b.add(b.multiply(block, lanes), b.iota(LANES, 0, 1))
            within = b.apply("lt", place, after)
            moved = b.both(within, b.apply("gt", place, rank))
            for buffer, value in zip(self.buffers, own, strict=True):
                old = b.load(buffer, b.add(self.begin, b.apply("subtract", place, one)), moved)
                new = b.apply("select", b.apply("eq", place, rank), b.cast(value, buffer.type.element), old)  # type: ignore[attr-defined]
                b.store(buffer, b.add(self.begin, place), new, b.both(within, b.apply("ge", place, rank)))
            return []

        b.loop(b.position(0), b.apply("subtract", blocks, first), 1, [], move)
        end = b.add(self.begin, b.apply("subtract", after, one))
        return [after, *[b.load(buffer, end, None) for buffer in self.buffers[: self.keys]]]


__all__ = ["Selecting", "is_selected"]
