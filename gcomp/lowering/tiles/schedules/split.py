"""Reductions of few long rows, cut into pieces so that all of the GPU works.

For each chain of reductions that wait for each other there is a kernel that reduces every piece into scratch memory,
and a last one that writes the results. Each begins by combining what the pieces of the kernels before it gave. Which
pieces there are does not depend on the machine's timing: equal inputs give equal bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.dims import Ranges, Size, ceildiv, product
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import ELEMENT_TYPES
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.folding import ranges_of
from gcomp.lowering.tiles.schedules.folds import Columns, Fold, share_out
from gcomp.lowering.tiles.schedules.identities import order_is_open
from gcomp.lowering.tiles.schedules.kernel import Scheduled, Scratch, Settings, Step, blocks_of, power_of_two
from gcomp.lowering.tiles.schedules.reduction import Reduction, reduction
from gcomp.lowering.tiles.tile import element

PROGRAMS = 264
"""With fewer programs than this, long rows are cut into pieces."""

CHUNKS = 4
"""A piece has at least so many chunks."""


def rows(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A reduction kernel's programs: one kernel for whole rows, or several for pieces of them."""
    reduces = [op for op in launch.block.ops if isinstance(op, hlo.ReduceOp)]
    if not all(order_is_open(op.body) for op in reduces):
        return reduction(launch, name, ranges, settings)
    if settings.get("pieces", 2) < 2:
        return reduction(launch, name, ranges, settings)
    plan = _Stage(launch, name, ranges, settings, 0, 1)
    pieces = settings.get("pieces", plan.piece_count())
    if pieces < 2:
        return reduction(launch, name, ranges, settings)
    count = len(plan.groups)
    stages = [
        _Stage(launch, f"{name}_{n}" if n < count else name, ranges, settings, n, pieces) for n in range(count + 1)
    ]
    steps = tuple([stage.write() for stage in stages])
    scratch = [Scratch(ELEMENT_TYPES[kind], plan.rows * pieces) for kind in stages[-1].kinds]
    return Scheduled(steps, tuple(scratch))


class _Stage(Reduction):
    """The kernel that reduces pieces for one group of reductions, or the one that writes."""

    def __init__(
        self, launch: LaunchOp, name: str, ranges: Ranges, settings: Settings, stage: int, pieces: int
    ) -> None:
        super().__init__(launch, name, ranges, Settings({**settings.values, "persistent": 0}))
        self.stage, self.pieces = stage, pieces
        self._lay_out()
        self.groups = self._groups()
        self.kinds: list[str] = []
        """Element types of the scratch buffers, one for each carried tile of the groups so far."""

    def piece_count(self) -> int:
        """How many pieces there should be."""
        programs = blocks_of(self.rows, self.block)
        chunks = [blocks_of(c.extent, c.block) for c in self.columns.values()]
        if not isinstance(programs, int) or not 0 < programs < PROGRAMS or not all(isinstance(c, int) for c in chunks):
            return 1
        return min(-(-PROGRAMS // programs), min(c for c in chunks if isinstance(c, int)) // CHUNKS)

    def write(self) -> Step:
        """The kernel."""
        elements = self.writer.elements(self.frame)
        for n, group in enumerate(self.groups[: self.stage + 1]):
            columns = self._columns_of(group)
            folds = [Fold(elements, op, self._row(op), columns, self.block, self.axis) for op in group]
            carried = [tile for fold in folds for tile in fold.start()]
            first = len(self.kinds)
            self.kinds += [element(tile) for tile in carried]
            if n == self.stage:
                found = self._loop(elements, columns, carried, lambda t, f=folds: share_out(f, t, Fold.step))  # type: ignore[misc]
                self._keep(first, share_out(folds, found, Fold.whole))
            else:
                share_out(folds, self._partial(first, carried), Fold.finish)
        if self.stage == len(self.groups):
            self._store(elements)
        lanes = self.block * max([c.block for c in self.columns.values()], default=1)
        warps = self.settings.get("warps", max(1, min(16, lanes // 256)))
        return self.writer.step((blocks_of(self.rows, self.block), self.pieces), warps)

    def _columns_of(self, group: Sequence[hlo.ReduceOp]) -> Columns:
        return self.columns[product(ranges_of(group[0], 0, 0))]

    # ---- pieces ----

    def _range(self, columns: Columns) -> tuple[SSAValue, SSAValue]:
        b, frame = self.b, self.frame
        share = frame.position(ceildiv(blocks_of(columns.extent, columns.block), self.pieces) * columns.block)
        first = b.multiply(b.program_id(1), share)
        return first, b.apply("minimum", frame.position(columns.extent), b.add(first, share))

    def _place(self, piece: SSAValue) -> SSAValue:
        row: Size = 0 if self.rows == 1 else d(0)
        return self.b.add(self.frame.position(row * self.pieces), piece)

    def _keep(self, first: int, tiles: Sequence[SSAValue]) -> None:
        b = self.b
        for n, tile in enumerate(tiles):
            buffer = self.writer.scratch(first + n, ELEMENT_TYPES[element(tile)], "out")
            b.store(buffer, self._place(b.program_id(1)), tile, self.frame.mask((), {d(0).text}))

    def _partial(self, first: int, starts: Sequence[SSAValue]) -> list[SSAValue]:
        """What all pieces of the rows gave, and beyond them what is carried before the first chunk."""
        b, count = self.b, power_of_two(self.pieces)
        lanes = b.iota(count, 1, 2)
        inside = None if count == self.pieces else b.apply("lt", lanes, b.position(self.pieces))
        found: list[SSAValue] = []
        for n, start in enumerate(starts):
            kind = element(start)
            buffer = self.writer.scratch(first + n, ELEMENT_TYPES[kind], "in")
            tile = b.load(buffer, self._place(lanes), b.both(inside, self.frame.mask((), {d(0).text})))
            tile = b.broadcast(tile, (self.block, count))
            if inside is not None:
                nothing = b.constant(start.owner.value.splat(), kind)  # type: ignore[union-attr]
                tile = b.apply("select", b.broadcast(inside, (self.block, count)), tile, nothing)
            found.append(tile)
        return found

    # ---- results ----

    def _write(self, elements: Elements, j: int, access: IndexingMap) -> None:
        b, frame = self.b, self.frame
        found = elements(self.writer.values[j], access)
        used = frame.used(access) | {d(0).text}
        place = frame.place(access.shape, access.indices)
        mask = frame.mask((), used)
        if used == {d(0).text}:
            # All programs of a row find the same: the first one writes it.
            mask = b.both(mask, b.apply("eq", b.broadcast(b.program_id(1), (self.block, 1)), b.position(0)))
        b.store(self.writer.outputs[j], frame.position(place), found, mask)


__all__ = ["rows"]
