"""Sorts: the place of an element is how many elements of its row come before it, which programs count side by side.

Short rows are counted directly: of equal elements the earlier one comes first. Longer rows are cut into chunks, which
are sorted so into scratch memory; then each element finds its place in the other chunks by binary search, or, where a
program is one thread of a processor (`merge`), one program merges the chunks of a row, two at a time. Any comparator
will do whose answers for pairs, the later one first, make an order; plain comparisons of floats are made to, with NaN
last.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import d, linear
from gcomp.dims import Ranges, Size, ceildiv, product
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import ELEMENT_TYPES, dtype_text
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.bits import pack
from gcomp.lowering.tiles.frames import delinearize
from gcomp.lowering.tiles.schedules.kernel import (
    KernelWriter,
    Scheduled,
    Scratch,
    Settings,
    Step,
    blocks_of,
    is_covered,
    power_of_two,
)
from gcomp.lowering.tiles.schedules.limits import limiting
from gcomp.lowering.tiles.schedules.merging import Runs
from gcomp.lowering.tiles.schedules.ordering import ROW, Problem, Tiles, problem_of, write_kept
from gcomp.lowering.tiles.schedules.top_k import Selecting, is_selected
from gcomp.lowering.tiles.tile import IN_ORDER, broadcast_shapes, element, static_shape

OWN, OTHER, RANK = range(ROW + 1, ROW + 4)

DIRECT = 2048
"""Rows of up to so many elements are counted directly."""

CHUNK = 1024
"""Elements of a chunk of longer rows."""

MOST_MERGED = 1 << 30
"""Elements of a row whose chunks are merged, at most."""

LANES = 2048
"""Pairs that a program compares at a time."""


def sort(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A sort kernel's programs."""
    problem, wanted = problem_of(launch)
    high = ranges.bounds(problem.length)[1]
    if high is not None and high <= settings.get("direct", DIRECT):
        return Scheduled((_Counting(launch, problem, wanted, name, ranges, settings, None).run(),))
    if settings.get("limit", 0) and (found := limiting(launch, problem, wanted, name, ranges)) is not None:
        return found
    if is_selected(problem, ranges, settings.get("select", 0)):
        selecting = Selecting(launch, problem, wanted, name, ranges)
        return Scheduled((selecting.run(),), selecting.scratch)
    merge = settings.get("merge", 0) if high is not None and high < MOST_MERGED else 0
    chunk = merge or settings.get("chunk", CHUNK)
    first = _Counting(launch, problem, wanted, f"{name}_chunks", ranges, settings, chunk)
    kinds = problem.scratch_types(wanted)
    count = product(problem.shape)
    if merge:
        assert high is not None
        # Merges read from one half and write to the other.
        scratch = [Scratch(kind, 2 * count) for kind in kinds]
        levels = (-(-high // merge) - 1).bit_length()
        return Scheduled(
            (first.run(), _Merging(launch, problem, wanted, name, ranges, merge, levels).run()), tuple(scratch)
        )
    scratch = [Scratch(kind, count) for kind in kinds]
    return Scheduled((first.run(), _merge(launch, problem, wanted, name, ranges, chunk)), tuple(scratch))


class _Counting:
    """The kernel that counts, within rows or (with `chunk`) within chunks of them, into scratch memory."""

    def __init__(
        self, launch: LaunchOp, problem: Problem, wanted: Sequence[int], name: str, ranges: Ranges,
        settings: Settings, chunk: int | None,
    ) -> None:  # fmt: skip
        self.launch, self.problem, self.wanted, self.chunk = launch, problem, wanted, chunk
        self.writer = KernelWriter(launch, name, ranges)
        self.b, self.frame = self.writer.b, self.writer.frame()
        length = chunk or problem.length
        most = settings.get("block", 32)
        self.block = min(most, power_of_two(length)) if isinstance(length, int) else most
        rows = 1 if chunk else max(1, settings.get("lanes", LANES) // self.block**2)
        self.rows = min(rows, power_of_two(problem.rows)) if isinstance(problem.rows, int) else rows

    def run(self) -> Step:
        """The kernel."""
        b, frame, problem, block = self.b, self.frame, self.problem, self.block
        length, chunk = problem.length, self.chunk
        blocks = blocks_of(length, block)
        grid = self.writer.frame()
        grid.coordinate(blocks_of(problem.rows, self.rows) * blocks, b.program_id(0))
        row, which = [
            grid.position(grid.simplify(grid.access((1,), (i,))).indices[0])
            for i in delinearize(d(0), (blocks_of(problem.rows, self.rows), blocks))
        ]
        for extent in (problem.rows, length, length, length):
            frame.declare(extent)
        rows = b.add(b.multiply(row, b.position(self.rows)), b.iota(self.rows, 0, 3))
        frame.bind(ROW, rows, partial=not is_covered(frame, problem.rows, self.rows))
        first = b.multiply(which, b.position(block))
        frame.bind(OWN, b.add(first, b.iota(block, 1, 3)), partial=not is_covered(frame, length, block))
        elements = self.writer.elements(frame)
        low, high = b.position(0), frame.position(length)
        if chunk is not None:
            low = b.multiply(b.apply("divide_positive", first, b.position(chunk)), b.position(chunk))
            high = b.apply("minimum", high, b.add(low, b.position(chunk)))
        rank = b.add(self._count(elements, low, first, high), low)
        self._store(elements, rank)
        warps = max(1, min(8, self.rows * block * block // 256))
        return self.writer.step((blocks_of(problem.rows, self.rows) * blocks,), warps)

    def _count(self, elements: Elements, low: SSAValue, first: SSAValue, high: SSAValue) -> SSAValue:
        """How many elements come before each own one: those before the block, in it, and after it."""
        b, frame, block, problem = self.b, self.frame, self.block, self.problem
        own = [elements(v, frame.access(problem.shape, problem.indices(self._place(OWN)))) for v in problem.operands]
        shape = (self.rows, block, block)
        next_ = b.add(first, b.position(block))
        counts: Sequence[SSAValue] = [b.constant(0, "i32", shape)]
        for start, stop, side in ((low, first, "left"), (first, next_, "both"), (next_, high, "right")):

            def body(at: SSAValue, tiles: Tiles, side: str = side) -> Tiles:
                frame.bind(OTHER, b.add(at, b.iota(block, 2, 3)), partial=True)
                with elements.scope():
                    other = [
                        elements(v, frame.access(problem.shape, problem.indices(self._place(OTHER))))
                        for v in problem.operands
                    ]
                    found = b.broadcast(self._precedes(own, other, side), shape)
                inside = frame.mask((), {d(OTHER).text})
                found = found if inside is None else b.apply("and", found, b.broadcast(inside, shape))
                return [b.add(tiles[0], b.cast(found, "i32"))]

            if side == "both":
                counts = body(start, counts)
            else:
                counts = b.loop(start, stop, block, counts, body)
        frame.tiles[OTHER] = None
        (count,) = b.reduce(counts, 2, lambda x, y: [b.add(x[0], y[0])])
        return b.cast(count, b.index)

    def _place(self, coordinate: int) -> Size:
        return 0 if self.problem.length == 1 else d(coordinate)

    def _precedes(self, own: Tiles, other: Tiles, side: str) -> SSAValue:
        """Whether others come before: those on the left also if neither comes before the other."""
        b, before = self.b, self.problem.before
        left = right = None
        if side != "right":
            left = b.apply("not", before(b, own, other))
        if side != "left":
            right = before(b, other, own)
        if left is None or right is None:
            return left if right is None else right  # type: ignore[return-value]
        tiles = [self.frame.tiles[c] for c in (OTHER, OWN)]
        on_left, same = b.apply("lt", *tiles), b.apply("eq", *tiles)  # type: ignore[arg-type]
        found = b.apply("select", *_alike(b, on_left, left, right))
        return b.apply("and", found, b.apply("not", same))

    def _store(self, elements: Elements, rank: SSAValue) -> None:
        b, frame, problem = self.b, self.frame, self.problem
        frame.bind(RANK, rank)
        source = frame.access(problem.shape, problem.indices(self._place(OWN)))
        positions = len(problem.operands)
        if self.chunk is not None:
            place = frame.position(frame_place(problem, self._place(RANK)))
            values = [elements(v, source) for v in problem.operands]
            if positions in self.wanted:
                values.append(b.cast(frame.position(d(OWN)), "i32"))
            for n, value in enumerate(values):
                b.store(self.writer.scratch(n, ELEMENT_TYPES[element(value)], "out"), place, value, frame.full_mask())
            return
        target = frame.access(problem.kept_shape, problem.indices(self._place(RANK)))
        mask = frame.full_mask()
        if problem.kept != problem.length:
            mask = b.both(mask, b.apply("lt", rank, frame.position(problem.kept)))
        place = frame.position(linear(target.shape, target.indices))
        for j, n in enumerate(self.wanted):
            own = b.cast(frame.position(self._place(OWN)), "i32")
            value = own if n == positions else elements(problem.operands[n], source)
            b.store(self.writer.outputs[j], place, pack(b, value, dtype_text(self.launch.results[j].type)), mask)


def _merge(launch: LaunchOp, problem: Problem, wanted: Sequence[int], name: str, ranges: Ranges, chunk: int) -> Step:
    """The kernel that finds each element's place among all chunks."""
    writer = KernelWriter(launch, name, ranges)
    b, frame, block, length = writer.b, writer.frame(), 256, problem.length
    for extent in (problem.rows, length, length, length):
        frame.declare(extent)
    count = product(problem.shape)
    grid = writer.frame()
    base = b.multiply(b.program_id(0), b.position(block))
    grid.coordinate(count, b.add(base, b.iota(block, 0, 1)), partial=not is_covered(grid, count, block))
    row, own = (grid.position(i) for i in delinearize(d(0), (problem.rows, length)))
    mask = grid.full_mask()
    frame.bind(ROW, row)
    frame.bind(OWN, own)
    positions = len(problem.operands)
    buffers = [writer.scratch(n, kind, "in") for n, kind in enumerate(problem.scratch_types(wanted))]
    mine = [b.load(buffer, grid.position(d(0)), mask) for buffer in buffers]
    first = b.multiply(row, frame.position(length))
    size = b.position(chunk)
    home = b.apply("divide_positive", own, size)

    def search(which: SSAValue, ranks: Tiles) -> Tiles:
        """How many elements of a chunk come before: the bounds close in on it."""
        start = b.multiply(which, size)
        end = b.apply("minimum", frame.position(length), b.add(start, size))
        after = b.apply("lt", which, home)

        def halve(_: SSAValue, bounds: Tiles) -> Tiles:
            low, high = bounds
            middle = b.apply("divide_positive", b.add(low, high), b.position(2))
            live = b.apply("lt", low, high)
            place = b.add(first, middle)
            other = [b.load(buffer, place, b.both(mask, live)) for buffer in buffers[:positions]]
            left, right = b.apply("not", problem.before(b, mine, other)), problem.before(b, other, mine)
            goes = b.apply("and", live, b.apply("select", *_alike(b, after, left, right)))
            stays = b.apply("and", live, b.apply("not", goes))
            return [
                b.apply("select", goes, b.add(middle, b.position(1)), low),
                b.apply("select", stays, middle, high),
            ]

        bounds = [b.broadcast(start, (block,)), b.broadcast(end, (block,))]
        low, _ = b.loop(b.position(0), b.position(chunk.bit_length()), 1, bounds, halve)
        elsewhere = b.apply("ne", home, which)
        found = b.apply("select", elsewhere, b.apply("subtract", low, start), b.position(0))
        return [b.add(ranks[0], found)]

    rank = b.apply("subtract", own, b.multiply(home, size))
    (rank,) = b.loop(b.position(0), frame.position(ceildiv(length, chunk)), 1, [b.broadcast(rank, (block,))], search)
    frame.bind(RANK, rank)
    place = frame.position(linear(problem.kept_shape, problem.indices(d(RANK))))
    if problem.kept != length:
        mask = b.both(mask, b.apply("lt", rank, frame.position(problem.kept)))
    for j, n in enumerate(wanted):
        b.store(writer.outputs[j], place, pack(b, mine[n], dtype_text(launch.results[j].type)), mask)
    return writer.step((blocks_of(count, block),))


class _Merging:
    """The kernel that merges the sorted chunks of a row, two runs at a time, until one is left."""

    def __init__(
        self, launch: LaunchOp, problem: Problem, wanted: Sequence[int], name: str, ranges: Ranges, chunk: int,
        levels: int,
    ) -> None:  # fmt: skip
        self.problem, self.wanted, self.chunk, self.levels = problem, wanted, chunk, levels
        self.writer = KernelWriter(launch, name, ranges)
        self.b, self.frame = self.writer.b, self.writer.frame()
        self.keys = len(problem.operands)
        self.buffers = [self.writer.scratch(n, kind, "inout") for n, kind in enumerate(problem.scratch_types(wanted))]

    def run(self) -> Step:
        """The kernel: one program for each row."""
        b, frame, problem = self.b, self.frame, self.problem
        frame.coordinate(problem.rows, b.program_id(0))
        self.length, self.kept = frame.position(problem.length), frame.position(problem.kept)
        begin = b.multiply(b.program_id(0), self.length)
        begins = begin, b.add(begin, frame.position(product(problem.shape)))
        runs = Runs(b, problem.before, self.keys, self.buffers, self.length, self.kept)
        found = runs.merge(b.position(self.chunk), *begins, self.levels)
        write_kept(self.writer, frame, problem, self.wanted, self.buffers, found)
        step = self.writer.step((problem.rows,))
        step.kernel.attributes[IN_ORDER] = UnitAttr()
        return step


def frame_place(problem: Problem, place: Size) -> Size:
    """Where an element lies in scratch memory, row after row."""
    return (0 if problem.rows == 1 else d(ROW)) * problem.length + place


def _alike(b: TileBuilder, *masks: SSAValue) -> list[SSAValue]:
    """Masks in one shape."""
    shape = broadcast_shapes(*map(static_shape, masks))
    return [b.broadcast(mask, shape) for mask in masks]


__all__ = ["sort"]
