"""Reductions, with what comes before and after them in their rows: softmax and layer norm are one kernel each.

A program takes a block of rows. Rows that fit are held in one tile (persistent); longer ones are gone over in chunks,
once for each chain of reductions that wait for each other, and once more for what is written of every element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.fusion.rows import is_inner, waits_of
from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.analysis.work import flops_per_element
from gcomp.dims import Ranges, Size, floordiv, product, symbols_of
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import shape_of
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.folding import ranges_of
from gcomp.lowering.tiles.frames import delinearize
from gcomp.lowering.tiles.schedules.folds import Columns, Fold, share_out
from gcomp.lowering.tiles.schedules.identities import order_is_open
from gcomp.lowering.tiles.schedules.kernel import KernelWriter, Scheduled, Settings, blocks_of, is_covered, power_of_two
from gcomp.lowering.tiles.schedules.loop import flat
from gcomp.lowering.tiles.schedules.relations import relate

PERSISTENT = 8192
"""Rows of up to so many elements are held in one tile."""

LANES = 4096
"""Elements that a program works on at a time, about."""


def reduction(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A reduction kernel's program."""
    if not all(order_is_open(op.body) for op in launch.block.ops if isinstance(op, hlo.ReduceOp)):
        return flat(launch, name, ranges, settings)
    return Reduction(launch, name, ranges, settings).run()


def repeated_flops(launch: LaunchOp) -> int:
    """Arithmetic for an element of a row that is done more than once, since several passes over the row need it."""
    waits, written = waits_of(launch.block.ops), 0
    passes: dict[Operation, set[int]] = {launch.returned: {written}}
    long = {product(shape_of(op.operands[0])) for op in launch.block.ops if isinstance(op, hlo.ReduceOp)}
    repeated = 0
    for op in reversed(list(launch.block.ops)):
        own = {waits[op.results[0]]} if isinstance(op, hlo.ReduceOp) else passes.get(op, set[int]())
        for value in op.operands:
            if isinstance(value.owner, Operation):
                passes.setdefault(value.owner, set()).update(own)
        if len(own) > 1 and product(shape_of(op.results[0])) in long:
            repeated += flops_per_element(op) * (len(own) - 1)
    return repeated


def _whole(extent: int, chains: int) -> int:
    """Elements of a tile that has a whole row: a power of two, or a number for each chain."""
    return -(-extent // chains) * chains if 0 < chains < extent else power_of_two(extent)


class Reduction:
    """One kernel for all reductions of a launch: rows, with one coordinate along them for each length."""

    def __init__(self, launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> None:
        self.launch, self.settings = launch, settings
        self.writer = KernelWriter(launch, name, ranges)
        self.b, self.frame = self.writer.b, self.writer.frame()
        self.reduces = [op for op in launch.block.ops if isinstance(op, hlo.ReduceOp)]
        self.rows: Size = product(shape_of(self.reduces[0].results[0]))
        self.columns: dict[Size, Columns] = {}
        self.block = 1
        self.row: Size = d(0)
        """The number of a row, by the coordinates that say it."""
        self.axis = 0 if settings.get("across", 0) and not self._inner() else 1
        """The axis along which a row's elements lie in tiles: neighbours in memory go along the last one."""

    def run(self) -> Scheduled:
        self._lay_out()
        elements = self.writer.elements(self.frame)
        for group in self._groups():
            self._reduce(elements, group)
        self._store(elements)
        lanes = self.block * max([c.block for c in self.columns.values()], default=1)
        warps = self.settings.get("warps", max(1, min(16, lanes // 256)))
        grid = [blocks_of(self.frame.extents[0], self.block)]
        if self.row != d(0):
            grid.append(self.frame.extents[1])
        return Scheduled((self.writer.step(grid, warps),))

    # ---- layout ----

    def _lay_out(self) -> None:
        extents = list(dict.fromkeys(product(ranges_of(op, 0, 0)) for op in self.reduces))
        longest = max((n if isinstance(n, int) else PERSISTENT + 1 for n in extents), default=1)
        looped = longest > self.settings.get("persistent", PERSISTENT if self._inner() else 256)
        chunk = self.settings.get("columns", 2048 if self._inner() else 32)
        chains = self.settings.get("chains", 0)
        chunk = chunk if looped else _whole(longest, chains)
        rows = self.settings.get("rows", self._rows_at_a_time(chunk))
        beside = self._beside()
        if isinstance(beside, int):
            rows = min(rows, power_of_two(beside))
        self.block = rows
        place = self.b.add(
            self.b.multiply(self.b.program_id(0), self.b.position(rows)), self.b.iota(rows, 1 - self.axis, 2)
        )
        line = self._line(rows)
        self.frame.coordinate(line, place, partial=not is_covered(self.frame, line, rows))
        if line != self.rows:
            self.row = d(0) + d(self.frame.coordinate(floordiv(self.rows, line), self.b.program_id(1))) * line
        for extent in extents:
            block = chunk if looped else _whole(extent, chains) if isinstance(extent, int) else chunk
            found = Columns(self.frame.declare(extent), extent, block, looped, chains)
            if not looped:
                partial = not is_covered(self.frame, extent, block)
                self.frame.bind(found.coordinate, self.b.iota(block, self.axis, 2), partial=partial)
            self.columns[extent] = found

    def _beside(self) -> Size:
        """Rows that lie beside each other, as far as that is known: all, or those of one image, as it were."""
        shape = shape_of(self.reduces[0].results[0])
        if isinstance(self.rows, int) or self.axis == 1 or not shape or shape[-1] == 1:
            return self.rows
        return shape[-1]

    def _line(self, block: int) -> Size:
        """Rows that are numbered on their own: those that lie beside each other, where blocks of all do not end with
        them. Else what a block reads would lie apart."""
        lines = {shape_of(op.results[0])[-1:] for op in self.reduces}
        if self.axis == 1 or self.settings.get("pieces", 1) > 1:
            return self.rows
        if len(lines) != 1 or len({shape_of(op.results[0]) for op in self.reduces}) != 1:
            return self.rows
        (line,) = lines.pop() or (self.rows,)
        if not isinstance(line, int) or line <= block or line % block == 0:
            return self.rows
        return line

    def _inner(self) -> bool:
        """Whether neighbours in memory belong to one row."""
        return is_inner(self.reduces[0])

    def _rows_at_a_time(self, chunk: int) -> int:
        if self._inner():
            return max(1, min(8, 1024 // chunk))
        return max(1, min(128, LANES // chunk))

    def _groups(self) -> list[list[hlo.ReduceOp]]:
        """Reductions that do not wait for each other, over rows of one length, group by group."""
        waits = waits_of(self.launch.block.ops)
        groups: dict[tuple[int, Size], list[hlo.ReduceOp]] = {}
        for op in self.reduces:
            groups.setdefault((waits[op.results[0]], product(ranges_of(op, 0, 0))), []).append(op)
        return [groups[key] for key in sorted(groups, key=lambda k: k[0])]

    # ---- reducing ----

    def _row(self, op: hlo.ReduceOp) -> IndexingMap:
        """The element of a reduction's result that belongs to the row."""
        shape = shape_of(op.results[0])
        return self.frame.access(shape, delinearize(self.row, shape))

    def _reduce(self, elements: Elements, group: Sequence[hlo.ReduceOp]) -> None:
        columns = self.columns[product(ranges_of(group[0], 0, 0))]
        folds = [Fold(elements, op, self._row(op), columns, self.block, self.axis) for op in group]
        if columns.looped:
            carried = [tile for fold in folds for tile in fold.start()]
            found = self._loop(elements, columns, carried, lambda tiles: share_out(folds, tiles, Fold.step))
        else:
            found = [tile for fold in folds for tile in fold.items()]
        share_out(folds, found, Fold.finish)

    def _loop(
        self, elements: Elements, columns: Columns, carried: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:  # fmt: skip
        """Go over rows in chunks."""
        b, frame = self.b, self.frame

        def turn(start: SSAValue, tiles: Sequence[SSAValue]) -> Sequence[SSAValue]:
            partial = not is_covered(frame, columns.extent, columns.block)
            frame.bind(columns.coordinate, b.add(start, b.iota(columns.block, self.axis, 2)), partial=partial)
            with elements.scope():
                return body(tiles)

        found = b.loop(*self._range(columns), columns.block, carried, turn)
        frame.tiles[columns.coordinate] = None
        return found

    def _range(self, columns: Columns) -> tuple[SSAValue, SSAValue]:
        """The part of rows that a program goes over: all of it."""
        return self.b.position(0), self.frame.position(columns.extent)

    # ---- results ----

    def _store(self, elements: Elements) -> None:
        seeds: dict[SSAValue, IndexingMap] = {}
        for op in self.reduces:
            columns = self.columns[product(ranges_of(op, 0, 0))]
            row = self._row(op)
            ranged = delinearize(d(columns.coordinate), ranges_of(op, 0, 0))
            for n, operand in enumerate(op.operands[: len(op.results)]):
                seeds.setdefault(operand, elements.reads(op, 0, n, row, ranged))
            seeds |= dict.fromkeys(op.results, row)
        spread = [(d(c.coordinate), c.extent) for c in self.columns.values() if c.extent != 1]
        places = relate(self.launch, elements, seeds, spread)
        waiting: dict[int, list[int]] = {}
        for j, value in enumerate(self.writer.values):
            if 0 in shape_of(value):
                continue
            access = places.get(value)
            if access is None or not self._is_bijective(access):
                access = self._any_place(value)
            used = [c.coordinate for c in self.columns.values() if d(c.coordinate).text in self.frame.used(access)]
            places[value] = access
            if used and self._columns_at(used[0]).looped:
                waiting.setdefault(used[0], []).append(j)
            else:
                self._write(elements, j, access)
        for coordinate, outputs in waiting.items():

            def body(tiles: Sequence[SSAValue], outputs: Sequence[int] = outputs) -> Sequence[SSAValue]:
                for j in outputs:
                    self._write(elements, j, places[self.writer.values[j]])
                return tiles

            self._loop(elements, self._columns_at(coordinate), [], body)

    def _is_bijective(self, access: IndexingMap) -> bool:
        """Whether the points of the frame reach every element of a value once."""
        count: Size = 1
        for name in self.frame.used(access) | symbols_of(self.row):
            count = count * self.frame.extents[int(name[2:])]
        return count == product(access.shape)

    def _any_place(self, value: SSAValue) -> IndexingMap:
        """The elements of a value that follows from no reduction, shared out over rows and columns."""
        shape = shape_of(value)
        count = product(shape)
        if count == self.rows:
            return self.frame.access(shape, delinearize(self.row, shape))
        columns = next(c for c in self.columns.values() if c.extent * self.rows == count)
        return self.frame.access(shape, delinearize(self.row * columns.extent + d(columns.coordinate), shape))

    def _columns_at(self, coordinate: int) -> Columns:
        return next(c for c in self.columns.values() if c.coordinate == coordinate)

    def _write(self, elements: Elements, j: int, access: IndexingMap) -> None:
        found = elements(self.writer.values[j], access)
        used = self.frame.used(access) | symbols_of(self.row)
        self.writer.store(j, self.frame, access, found, used)
