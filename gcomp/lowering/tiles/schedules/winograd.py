"""Convolutions by values at points: a program takes a block of tiles from the image to the results.

The values of its tiles at all points stay in memory of the program's own, which a cache keeps. A panel of weights after
the other, they are multiplied point by point (a matrix product of tiles by channels by features each) and what follows
from the products is computed and written, with all that comes after the convolution fused in.

Sums over channels go in chains of `CHAIN`, which are added in their order. As for every kernel, no choice of blocks
changes a bit: `rows` are the tiles of a block of sums, `blocks` how many a program has, `panels` how many panels of
weights, and `lanes` how many channels, or features, are transformed at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import d
from gcomp.dims import Ranges, Size, floordiv, mod, product
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.types import shape_of
from gcomp.ir.winograd import CHAIN, evaluate, interpolate
from gcomp.lowering.tiles.frames import Frame
from gcomp.lowering.tiles.schedules.borders import borders, surrounded
from gcomp.lowering.tiles.schedules.kernel import (
    KernelWriter,
    Scheduled,
    Settings,
    blocks_of,
    check_trusted,
    is_covered,
)
from gcomp.lowering.tiles.schedules.relations import relate

GAP = 16
"""Elements between what belongs to one point and to the next, so that a cache has places for all points of a tile."""


def winograd(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A winograd kernel's program."""
    op = next(op for op in launch.block.ops if isinstance(op, hlo.CompositeOp))
    check_trusted(op)
    found = _Winograd(launch, op, name, ranges, settings).run()
    return Scheduled((*found.steps, *borders(launch, name, ranges)))


class _Winograd:
    def __init__(
        self, launch: LaunchOp, op: hlo.CompositeOp, name: str, ranges: Ranges, settings: Settings
    ) -> None:  # fmt: skip
        self.launch, self.op, self.settings = launch, op, settings
        self.writer = KernelWriter(launch, name, ranges)
        self.b = self.writer.b
        self.m: int = op.attributes_of()["tile"]
        self.n = self.m + 2
        count, rows, columns, _ = shape_of(op.operands[0])
        self.panels, self.points, self.channels, self.width = cast("tuple[int, ...]", shape_of(op.operands[1]))
        self.tiles: tuple[Size, Size, Size] = (count, floordiv(rows - 2, self.m), floordiv(columns - 2, self.m))
        """Tiles of an image, of its rows and of its columns."""
        self.rows = settings.get("rows", 12)
        """Tiles of a block of sums."""
        self.block = self.rows * settings.get("blocks", 1)
        """Tiles of a program."""
        self.lanes = settings.get("lanes", 16)
        self.value_step, self.product_step = self.block * self.channels + GAP, self.block * self.width + GAP
        """How far it is in memory from one point to the next."""
        self.values = self.b.memory("f32", self.points * self.value_step)
        self.products = self.b.memory("f32", self.points * self.product_step)
        self.results = self.b.memory("f32", self.m * self.m * self.lanes)

    def run(self) -> Scheduled:
        """One kernel, whose programs each compute a block of tiles."""
        b, count = self.b, product(self.tiles)
        first = b.multiply(b.program_id(0), b.position(self.block))
        blocks, tiles = self._blocks_and_tiles(first)
        self._each(self.block if blocks is None else b.multiply(blocks, b.position(self.rows)),
                   lambda t: self._evaluate(first, t))  # fmt: skip

        taken = next(n for n in range(min(self.settings.get("panels", self.panels), self.panels), 0, -1)
                     if self.panels % n == 0)  # fmt: skip
        before = b.multiply(b.program_id(1), b.position(taken)) if taken < self.panels else b.position(0)

        def panel(number: SSAValue) -> None:
            p = b.add(before, number)
            self._each(self.points, lambda point: self._multiply(p, point, blocks))
            self._each(self.block if tiles is None else tiles, lambda t: self._interpolate(first, t, p))

        self._each(taken, panel)
        groups = [] if taken == self.panels else [self.panels // taken]
        return Scheduled((self.writer.step((blocks_of(count, self.block), *groups)),))

    def _blocks_and_tiles(self, first: SSAValue) -> tuple[SSAValue | None, SSAValue | None]:
        """How many blocks of sums, and tiles, a program has where the call decides how many there are; None for all."""
        b, count = self.b, product(self.tiles)
        if isinstance(count, int):
            return None, None
        frame = self.writer.frame()
        tiles = b.apply("minimum", b.position(self.block), b.apply("subtract", frame.position(count), first))
        more = b.add(tiles, b.position(self.rows - 1))
        return b.apply("divide_positive", more, b.position(self.rows)), tiles

    # ---- the image ----

    def _evaluate(self, first: SSAValue, t: SSAValue) -> None:
        """The values of a tile at all points. A tile beyond the last one is the last one."""
        b, n = self.b, self.n
        frame = self.writer.frame()
        last = frame.position(product(self.tiles) - 1)
        frame.coordinate(product(self.tiles), b.apply("minimum", b.add(first, t), last))
        at = self._place(frame)
        image = shape_of(self.op.operands[0])
        lanes = self._lanes(self.channels)

        def some(c: SSAValue) -> None:
            inner = self.writer.frame()
            for extent, tile in zip(image, (at[0], *[None] * 2), strict=False):
                inner.declare(extent) if tile is None else inner.coordinate(extent, tile)
            inner.coordinate(self.channels, b.add(b.multiply(c, b.position(lanes)), b.iota(lanes, 0, 1)))
            elements = self.writer.elements(inner)
            inner.bind(1, b.multiply(at[1], b.position(self.m)))
            inner.bind(2, b.multiply(at[2], b.position(self.m)))

            def element(y: int, x: int) -> SSAValue:
                return elements(self.op.operands[0], inner.access(image, (d(0), d(1) + y, d(2) + x, d(3))))

            columns = [evaluate(self.m, [element(y, x) for y in range(n)], self._sum) for x in range(n)]
            for i in range(n):
                for j, value in enumerate(evaluate(self.m, [column[i] for column in columns], self._sum)):
                    row = b.add(b.multiply(t, b.position(self.channels)), b.position((i * n + j) * self.value_step))
                    b.store(self.values, b.add(row, inner.position(d(3))), value, None)

        self._each(self.channels // lanes, some)

    # ---- products ----

    def _multiply(self, panel: SSAValue, point: SSAValue, blocks: SSAValue | None) -> None:
        """The products at a point, of all tiles of the program and the features of a panel."""
        b, rows, width = self.b, self.rows, self.width
        weights = self.writer.inputs[self.op.operands[1]]
        whole = b.add(b.multiply(panel, b.position(self.points)), point)
        across = b.iota(width, 1, 2)

        def part(block: SSAValue) -> None:
            down = b.add(b.multiply(block, b.position(rows)), b.iota(rows, 0, 2))
            first = b.multiply(point, b.position(self.value_step))

            def add(start: SSAValue, sums: Sequence[SSAValue], terms: int) -> SSAValue:
                row = b.add(b.multiply(down, b.position(self.channels)), b.add(first, start))
                lhs = b.add(row, b.iota(terms, 1, 2))
                term = b.add(b.add(b.multiply(whole, b.position(self.channels)), start), b.iota(terms, 0, 2))
                rhs = b.add(b.multiply(term, b.position(width)), across)
                factors = b.load(self.values, lhs, None), b.load(weights, rhs, None)
                found = b.dot(*factors, b.constant(0, "f32", (rows, width)), "exact")
                return b.apply("add", sums[0], found) if sums else found

            even = self.channels - self.channels % CHAIN
            if self.channels <= CHAIN:
                found = add(b.position(0), (), self.channels)
            else:
                start = b.constant(0, "f32", (rows, width))
                (found,) = b.loop(
                    b.position(0), b.position(even), CHAIN, [start], lambda at, sums: [add(at, sums, CHAIN)]
                )
                if even < self.channels:
                    found = add(b.position(even), [found], self.channels - even)
            row = b.add(b.multiply(down, b.position(width)), b.multiply(point, b.position(self.product_step)))
            b.store(self.products, b.add(row, across), found, None)

        self._each(self.block // rows if blocks is None else blocks, part)

    # ---- results ----

    def _interpolate(self, first: SSAValue, t: SSAValue, panel: SSAValue) -> None:
        """The results of a tile for the features of a panel, and all that follows from them."""
        b, n, m = self.b, self.n, self.m
        tiles = self.writer.frame()
        tiles.coordinate(product(self.tiles) + self.block, b.add(first, t))
        at = self._place(tiles)
        lanes = self._lanes(self.width)

        def some(c: SSAValue) -> None:
            across = b.add(b.multiply(c, b.position(lanes)), b.iota(lanes, 0, 1))

            def value(point: int) -> SSAValue:
                row = b.add(b.multiply(t, b.position(self.width)), b.position(point * self.product_step))
                return b.load(self.products, b.add(row, across), None)

            columns = [interpolate(m, [value(i * n + j) for i in range(n)], self._sum) for j in range(n)]
            for y in range(m):
                for x, found in enumerate(interpolate(m, [column[y] for column in columns], self._sum)):
                    b.store(self.results, b.add(b.position((y * m + x) * lanes), b.iota(lanes, 0, 1)), found, None)
            feature = b.add(b.multiply(panel, b.position(self.width)), across)
            self._each(m * m, lambda q: self._finish(at, q, feature, lanes))

        self._each(self.width // lanes, some)

    def _finish(self, at: Sequence[SSAValue], q: SSAValue, feature: SSAValue, lanes: int) -> None:
        """One element of a tile, and what follows from it."""
        b, m, result = self.b, self.m, self.op.results[0]
        frame = self.writer.frame()
        shape = shape_of(result)
        inside = self.writer.frame()
        inside.coordinate(m * m, q)
        y, x = (inside.position(k) for k in (floordiv(d(0), m), mod(d(0), m)))
        is_whole = is_covered(frame, product(self.tiles), self.block)
        frame.coordinate(shape[0], at[0], partial=not is_whole)
        for k, within in ((1, y), (2, x)):
            place = b.add(b.multiply(at[k], b.position(m)), within)
            frame.coordinate(shape[k], place, partial=not is_covered(frame, shape[k], m))
        frame.coordinate(shape[3], feature)
        elements = self.writer.elements(frame)
        access = frame.access(shape, tuple([0 if size == 1 else d(k) for k, size in enumerate(shape)]))
        place = b.add(b.multiply(q, b.position(lanes)), b.iota(lanes, 0, 1))
        elements.know(result, access, b.load(self.results, place, None))
        places = relate(self.launch, elements, {result: access})
        places = {**places, **surrounded(self.launch, frame, places)}
        for j, value in enumerate(self.writer.values):
            if value not in places:
                raise UnsupportedError(
                    f"result {j} of a winograd kernel does not follow from its tiles", where=where(self.launch)
                )
            self.writer.store(j, frame, places[value], elements(value, places[value]))

    # ---- what they share ----

    def _each(self, count: int | SSAValue, body: Callable[[SSAValue], None]) -> None:
        """A loop that carries nothing."""
        b = self.b
        if count == 1:
            body(b.position(0))
            return

        def turn(at: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body(at)
            return []

        b.loop(b.position(0), b.position(count) if isinstance(count, int) else count, 1, [], turn, rolled=True)

    def _lanes(self, count: int) -> int:
        """Lanes of a vector, of which a row has a whole number."""
        lanes = self.lanes
        while count % lanes:
            lanes //= 2
        return lanes

    def _place(self, frame: Frame) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The image, the row and the column of the tile that is the frame's first coordinate."""
        _, rows, columns = self.tiles
        parts = (floordiv(d(0), rows * columns), mod(floordiv(d(0), columns), rows), mod(d(0), columns))
        image, row, column = (frame.position(frame.access((1,), (part,)).indices[0]) for part in parts)
        return image, row, column

    def _sum(self, terms: Sequence[tuple[float, SSAValue]]) -> SSAValue:
        """The sum of factors times values, in their order: fused multiply-adds, but where a factor is 1 or -1."""
        b, found = self.b, None
        for factor, value in terms:
            if found is None:
                found = value if factor == 1 else b.apply("multiply", value, b.constant(factor, "f32"))
            elif abs(factor) == 1:
                found = b.apply("add" if factor == 1 else "subtract", found, value)
            else:
                found = b.apply("fma", value, b.constant(factor, "f32"), found)
        assert found is not None
        return found


__all__ = ["winograd"]
