"""Scans: running sums and the like, which frontends write as windows that reach back to the first element.

A program takes rows (of elements that are combined one after the other) in chunks, and carries what the chunks before
combined to. Few long rows are cut into pieces: one kernel combines each piece, and a second one begins its piece with
what those before it combined to. A `chlo.scan` whose body is elementwise goes over its slices in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.dims import Ranges, Size, product
from gcomp.errors import UnsupportedError
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.types import ELEMENT_TYPES, dtype_text, shape_of
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.elementwise import accumulator, apply_region, convert
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.schedules.identities import identity_of
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
from gcomp.lowering.tiles.schedules.loop import flat
from gcomp.lowering.tiles.schedules.pooling import pooling
from gcomp.lowering.tiles.schedules.relations import relate
from gcomp.lowering.tiles.schedules.selection import selection
from gcomp.lowering.tiles.tile import HELD
from gcomp.records import record

ROW, COLUMN, PIECE = range(3)

PROGRAMS = 264
"""With fewer rows at a time than this, long rows are cut into pieces."""

CHUNK = 1024
"""Elements of a row that are taken at a time."""


@record
class Running:
    """A window that reaches from an element to the first, or with `reverse` to the last, along a dimension."""

    op: hlo.ReduceWindowOp
    dimension: int
    reverse: bool
    kind: str

    @property
    def shape(self) -> tuple[Size, ...]:
        """The shape of the operand, and of the result."""
        return shape_of(self.op.results[0])

    @property
    def columns(self) -> Size:
        """How many elements are combined at most."""
        return self.shape[self.dimension]

    @property
    def rows(self) -> Size:
        """How many rows there are."""
        return product(n for k, n in enumerate(self.shape) if k != self.dimension)

    def indices(self) -> tuple[Size, ...]:
        """The element at a row and a column."""
        others = iter(delinearize(d(ROW), [n for k, n in enumerate(self.shape) if k != self.dimension]))
        column: Size = 0 if self.columns == 1 else d(COLUMN)
        return tuple([column if k == self.dimension else next(others) for k in range(len(self.shape))])


def window(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A window kernel's programs: of running sums and the like scans, of others loops over each window."""
    selects = next((op for op in launch.block.ops if isinstance(op, hlo.SelectAndScatterOp)), None)
    if selects is not None:
        return selection(launch, selects, name, ranges, settings)
    op = next((op for op in launch.block.ops if isinstance(op, hlo.ReduceWindowOp)), None)
    running = None if op is None else running_of(op)
    if running is None:
        return pooling(launch, name, ranges, settings) or flat(launch, name, ranges, settings)
    return _Scan(launch, running, name, ranges, settings).run()


def running_of(op: hlo.ReduceWindowOp) -> Running | None:
    """The scan that a window is; None where it is none."""
    if len(op.results) != 1 or shape_of(op.results[0]) != shape_of(op.operands[0]):
        return None
    if dtype_text(op.results[0].type) in HELD:
        return None
    window, shape = op.window(), shape_of(op.operands[0])
    long = [k for k, n in enumerate(window["window_dimensions"]) if n != 1]
    plain = all(v == 1 for key in ("window_strides", "base_dilations", "window_dilations") for v in window[key])
    if len(long) != 1 or not plain:
        return None
    (k,) = long
    padding: list[tuple[int, int]] = [(low, high) for low, high in window["padding"]]
    reach = window["window_dimensions"][k] - 1
    if reach + 1 != shape[k] or any(p != (0, 0) for i, p in enumerate(padding) if i != k):
        return None
    if padding[k] not in ((reach, 0), (0, reach)):
        return None
    kind = accumulator(op.body.block, dtype_text(op.results[0].type))
    identity, init = identity_of(op.body.block, kind), op.operands[1].owner
    # Where the window leaves the operand, it holds the init: this must change nothing.
    if identity is None or not isinstance(init, hlo.ConstantOp) or init.elements_attr.splat() != identity:
        return None
    return Running(op, k, padding[k] == (0, reach), kind)


class _Scan:
    def __init__(self, launch: LaunchOp, running: Running, name: str, ranges: Ranges, settings: Settings) -> None:
        self.launch, self.running, self.name, self.ranges, self.settings = launch, running, name, ranges, settings
        self.identity = identity_of(running.op.body.block, running.kind)
        last = max((k for k, n in enumerate(running.shape) if n != 1), default=0)
        self.axis = 1 if running.dimension == last else 0
        """The dimension of tiles along which rows lie: neighbours in memory are neighbours along dimension 1."""
        self.chunk = self._chunk()
        self.block = self._rows()
        self.pieces = self._pieces()

    def _chunk(self) -> int:
        columns = self.running.columns
        most = self.settings.get("columns", CHUNK) if self.axis else self.settings.get("steps", 64)
        return min(most, power_of_two(columns)) if isinstance(columns, int) else most

    def _rows(self) -> int:
        most = self.settings.get("rows", max(1, 1024 // self.chunk)) if self.axis else self.settings.get("across", 32)
        return min(most, power_of_two(self.running.rows)) if isinstance(self.running.rows, int) else most

    def _pieces(self) -> int:
        programs, columns = blocks_of(self.running.rows, self.block), self.running.columns
        if not isinstance(programs, int) or not isinstance(columns, int) or programs >= PROGRAMS:
            return self.settings.get("pieces", 1)
        return self.settings.get("pieces", max(1, min(columns // (4 * self.chunk), -(-PROGRAMS // max(1, programs)))))

    def run(self) -> Scheduled:
        """One kernel, or one that combines pieces and one that scans them."""
        if self.pieces == 1:
            return Scheduled((self._scan_step(None),))
        number = ELEMENT_TYPES[self.running.kind]
        scratch = Scratch(number, self.running.rows * self.pieces)
        return Scheduled((self._totals(), self._scan_step(0)), (scratch,))

    # ---- what both kernels share ----

    def _writer(self, suffix: str) -> tuple[KernelWriter, Frame]:
        writer = KernelWriter(self.launch, f"{self.name}{suffix}", self.ranges)
        b, frame, rows = writer.b, writer.frame(), self.running.rows
        for extent in (rows, self.running.columns, self.pieces):
            frame.declare(extent)
        at = b.add(b.multiply(b.program_id(0), b.position(self.block)), b.iota(self.block, 1 - self.axis, 2))
        frame.bind(ROW, at, partial=not is_covered(frame, rows, self.block))
        if self.pieces > 1:
            frame.bind(PIECE, b.program_id(1))
        return writer, frame

    def _grid(self) -> tuple[Size, ...]:
        return (blocks_of(self.running.rows, self.block), *([self.pieces] if self.pieces > 1 else []))

    def _warps(self) -> int:
        return self.settings.get("warps", max(1, min(8, self.block * self.chunk // 256)))

    def _range(self, frame: Frame) -> tuple[SSAValue, SSAValue]:
        """The chunks of a program's piece: of reversed scans, counted from the end."""
        b = frame.b
        chunks = blocks_of(self.running.columns, self.chunk)
        if self.pieces == 1:
            return b.position(0), frame.position(chunks)
        share = frame.position(blocks_of(chunks, self.pieces))
        first = b.multiply(b.program_id(1), share)
        return first, b.apply("minimum", frame.position(chunks), b.add(first, share))

    def _bind(self, frame: Frame, turn: SSAValue) -> None:
        b, columns = frame.b, self.running.columns
        if self.running.reverse:
            turn = b.apply("subtract", frame.position(blocks_of(columns, self.chunk) - 1), turn)
        at = b.add(b.multiply(turn, b.position(self.chunk)), b.iota(self.chunk, self.axis, 2))
        frame.bind(COLUMN, at, partial=not is_covered(frame, columns, self.chunk))

    def _tile(self, length: int) -> tuple[int, int]:
        return (self.block, length) if self.axis else (length, self.block)

    def _items(self, elements: Elements) -> SSAValue:
        b, frame, running = elements.b, elements.frame, self.running
        found = elements(running.op.operands[0], frame.access(running.shape, running.indices()))
        found = b.broadcast(convert(b, running.op, found, running.kind), self._tile(self.chunk))
        inside = frame.mask((), {d(COLUMN).text})
        return found if inside is None else b.apply("select", inside, found, self._nothing(elements))

    def _nothing(self, elements: Elements, length: int | None = None) -> SSAValue:
        return elements.b.constant(self.identity, self.running.kind, self._tile(length or self.chunk))

    def _combine(self, elements: Elements):  # type: ignore[no-untyped-def]
        block = self.running.op.body.block

        def combine(first: Sequence[SSAValue], second: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return apply_region(elements.b, block, [*first, *second])

        return combine

    def _place(self, frame: Frame, piece: Size) -> SSAValue:
        row: Size = 0 if self.running.rows == 1 else d(ROW)
        return frame.position(row * self.pieces + piece)

    # ---- kernels ----

    def _totals(self) -> Step:
        """What each piece combines to."""
        writer, frame = self._writer("_total")
        b, elements = writer.b, writer.elements(frame)
        combine = self._combine(elements)

        def body(turn: SSAValue, tiles: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._bind(frame, turn)
            with elements.scope():
                return combine(tiles, [self._items(elements)])

        found = b.loop(*self._range(frame), 1, [self._nothing(elements)], body)
        (total,) = b.reduce(found, self.axis, combine)
        buffer = writer.scratch(0, ELEMENT_TYPES[self.running.kind], "out")
        b.store(buffer, self._place(frame, d(PIECE)), total, frame.mask((), {d(ROW).text}))
        return writer.step(self._grid(), self._warps())

    def _scan_step(self, scratch: int | None) -> Step:
        """The scan itself, of a piece or of all."""
        writer, frame = self._writer("")
        b, elements, running = writer.b, writer.elements(frame), self.running
        combine = self._combine(elements)
        carried = self._nothing(elements, 1)
        if scratch is not None:
            carried = self._before(writer, frame, elements)

        def body(turn: SSAValue, tiles: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._bind(frame, turn)
            with elements.scope():
                items = self._items(elements)
                inner = b.scan([items], self.axis, combine, running.reverse)
                self._store(writer, elements, combine(tiles, inner)[0])
                return combine(tiles, b.reduce([items], self.axis, combine))

        b.loop(*self._range(frame), 1, [carried], body)
        return writer.step(self._grid(), self._warps())

    def _before(self, writer: KernelWriter, frame: Frame, elements: Elements) -> SSAValue:
        """What the pieces before a program's own combine to."""
        b, count = writer.b, power_of_two(self.pieces)
        lanes = b.iota(count, self.axis, 2)
        seen = b.apply("lt", lanes, b.program_id(1))
        place = b.add(self._place(frame, 0), lanes)
        buffer = writer.scratch(0, ELEMENT_TYPES[self.running.kind], "in")
        found = b.load(buffer, place, b.both(seen, frame.mask((), {d(ROW).text})))
        found = b.broadcast(b.apply("select", seen, found, self._nothing(elements, count)), self._tile(count))
        return b.reduce([found], self.axis, self._combine(elements))[0]

    def _store(self, writer: KernelWriter, elements: Elements, found: SSAValue) -> None:
        running, frame = self.running, elements.frame
        result = running.op.results[0]
        access = frame.access(running.shape, running.indices())
        elements.know(result, access, convert(writer.b, running.op, found, dtype_text(result.type)))
        places = relate(self.launch, elements, {result: access})
        for j, value in enumerate(writer.values):
            place: IndexingMap | None = places.get(value)
            if place is None:
                raise UnsupportedError("a result of a scan has other elements than it", where=where(running.op))
            writer.store(j, frame, place, elements(value, place))


# ---- chlo.scan ------------------------------------------------------------------------------------------------------


def scan(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """A scan kernel's program: each lane goes over the slices in turn, with its own element of each."""
    op = next(op for op in launch.block.ops if isinstance(op, chlo.ScanOp))
    dimension: int = op.value("dimension")
    counts = {product(shape_of(a)) for a in op.body.block.args}
    if len(counts) > 1:
        raise UnsupportedError(
            "a chlo.scan whose slices and carries differ in size does not run in one kernel", where=where(op)
        )
    writer = KernelWriter(launch, name, ranges)
    b, frame = writer.b, writer.frame()
    slices = shape_of(op.body.block.args[0]) if op.body.block.args else ()
    count, steps = product(slices), op.scan_size()
    block = settings.get("block", 128)
    block = min(block, power_of_two(count)) if isinstance(count, int) else block
    base = b.multiply(b.program_id(0), b.position(block))
    frame.coordinate(count, b.add(base, b.iota(block, 0, 1)), partial=not is_covered(frame, count, block))
    turn = frame.declare(steps)
    elements = writer.elements(frame)
    own = delinearize(d(0), slices)

    def place(value: SSAValue) -> IndexingMap:
        at: Size = 0 if steps == 1 else d(turn)
        return frame.access(shape_of(value), (*own[:dimension], at, *own[dimension:]))

    returned = {v: [j for j, r in enumerate(writer.values) if r is v] for v in op.results}
    if sum(map(len, returned.values())) != len(writer.values):
        raise UnsupportedError("what follows a chlo.scan needs a kernel of its own", where=where(op))
    inputs, outputs = len(op.inputs), len(op.outputs)

    def body(at: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if op.value("is_reverse"):
            at = b.apply("subtract", frame.position(steps - 1), at)
        frame.bind(turn, at)
        with elements.scope():
            items = [elements(v, place(v)) for v in op.operands[:inputs]]
            after = apply_region(b, op.body.block, [*items, *carried])
            for value, found in zip(op.outputs, after[:outputs], strict=True):
                for j in returned[value]:
                    writer.store(j, frame, place(value), b.broadcast(found, (block,)))
            return [b.broadcast(v, (block,)) for v in after[outputs:]]

    start = [b.broadcast(elements(v, frame.access(shape_of(v), own)), (block,)) for v in op.operands[inputs:]]
    carried = b.loop(b.position(0), frame.position(steps), 1, start, body)
    frame.tiles[turn] = None
    for value, found in zip(op.carries, carried, strict=True):
        for j in returned[value]:
            writer.store(j, frame, frame.access(shape_of(value), own), found, {d(0).text})
    return Scheduled((writer.step((blocks_of(count, block),), max(1, min(8, block // 32))),))


__all__ = ["running_of", "scan", "window"]
