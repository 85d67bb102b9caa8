"""Windows over images, as pooling has: a program computes some rows of results from memory of its own.

What the windows of these rows read is written there once, with what pads it around it: nothing is asked of an element
then, and what it follows from is computed once. What may be combined in any order, such as maxima, is combined down the
columns of windows first, and of that along rows: of 5x5 elements these are 10. Maxima and minima of floats are those of
integers in the same order. Sums of floats take the elements of each window in the order in which they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import Condition, IndexingMap, d
from gcomp.analysis.indexing.movement import inside
from gcomp.dims import Ranges, Size, product
from gcomp.dtypes import is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.build import known_position
from gcomp.lowering.tiles.elements.elementwise import accumulator, apply_region, convert
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.schedules.kernel import KernelWriter, Scheduled, Settings, Step, blocks_of, is_covered
from gcomp.lowering.tiles.schedules.relations import relate
from gcomp.lowering.tiles.schedules.scatter import Carrier, carrier_of
from gcomp.lowering.tiles.tile import HELD, static_shape
from gcomp.records import record

ROWS, COLUMNS = 16, 128
"""Rows and columns of results of a program, at most."""
HELD_ELEMENTS = 6144
"""Elements that a program holds of what its windows read, at most, where it has several rows."""
MOST_HELD = 8 * HELD_ELEMENTS
"""Elements that it holds at all: larger windows are gone over element by element."""
UNROLLED = 16
"""Elements of a window along a dimension that are combined in a row; more are combined in a loop."""

_FUNCTIONS = {"max": "maximum", "min": "minimum", "and": "and", "or": "or", "xor": "xor", "add": "add"}
"""What atomics call a function -> its name."""


@record
class Axis:
    """A dimension along which windows lie: so many elements of it, and results."""

    size: int
    results: int
    window: int
    stride: int
    dilation: int
    low: int

    @property
    def reach(self) -> int:
        """From the first element of a window to its last, both included."""
        return (self.window - 1) * self.dilation + 1

    def read_by(self, results: int) -> int:
        """Elements that so many results beside each other read, with what pads them."""
        return (results - 1) * self.stride + self.reach


_ONE = Axis(1, 1, 1, 1, 1, 0)


@record
class Planes:
    """A window over the last one or two of its dimensions that have more than one element, `down` and `along`, which
    follow each other; what lies after these (`inner`) is neighbours in memory."""

    op: hlo.ReduceWindowOp
    last: int
    down: Axis
    along: Axis
    inner: int

    @property
    def first(self) -> int:
        """The first dimension that windows go over."""
        return self.last - 1 if self.down is not _ONE else self.last


def planes_of(op: hlo.ReduceWindowOp) -> Planes | None:
    """The planes that a window goes over; None where it does not, or where their sizes are not known."""
    window, shape, results = op.window(), shape_of(op.operands[0]), shape_of(op.results[0])
    if len(op.results) != 1 or dtype_text(op.results[0].type) in HELD:
        return None
    keys = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    plain = [all(window[key][k] == 1 for key in keys) and tuple(window["padding"][k]) == (0, 0)
             for k in range(len(shape))]  # fmt: skip
    wide = [k for k, is_plain in enumerate(plain) if not is_plain]
    inner = product(shape[wide[-1] + 1 :]) if wide else 0
    if not wide or wide[0] < wide[-1] - 1 or not isinstance(inner, int):
        return None
    axes: list[Axis] = []
    for k in range(wide[-1] - 1, wide[-1] + 1):
        if k < 0 or plain[k]:
            axes.append(_ONE)
            continue
        size, count = shape[k], results[k]
        if not isinstance(size, int) or not isinstance(count, int) or window["base_dilations"][k] != 1:
            return None
        length, stride, _, dilation = (window[key][k] for key in keys)
        axes.append(Axis(size, count, length, stride, dilation, window["padding"][k][0]))
    down, along = axes
    return Planes(op, wide[-1], down, along, inner)


def pooling(launch: LaunchOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled | None:
    """The kernel of a launch around one window over planes; None where it is none, or what follows it has other
    elements than it."""
    ops = [op for op in launch.block.ops if isinstance(op, hlo.ReduceWindowOp)]
    planes = planes_of(ops[0]) if len(ops) == 1 else None
    lanes = settings.get("lanes", 0)
    if planes is None or not lanes or (planes.inner > 1 and (lanes == 1 or planes.inner % lanes)):
        return None
    problem = _Pooling(launch, planes, name, ranges, settings)
    step = problem.run() if problem.size <= MOST_HELD else None
    return None if step is None else Scheduled((step,), form="windows from memory of their own")


class _Pooling:
    def __init__(self, launch: LaunchOp, planes: Planes, name: str, ranges: Ranges, settings: Settings) -> None:
        self.launch, self.planes, self.op = launch, planes, planes.op
        self.writer = KernelWriter(launch, name, ranges)
        self.b = self.writer.b
        self.kind = accumulator(self.op.body.block, dtype_text(self.op.results[0].type))
        self.carrier = self._carrier()
        down, along, lanes = planes.down, planes.along, settings.get("lanes", 0)
        self.inner = lanes if planes.inner > 1 else 1
        """Elements after the two dimensions that a program takes."""
        whole = 1 if planes.inner > 1 else lanes
        self.columns = min(-(-along.results // whole) * whole, settings.get("wide", COLUMNS))
        """Results of a row that a program computes."""
        self.pitch = -(-along.read_by(self.columns) // whole) * whole
        """Elements of a row that it reads."""
        held = max(1, HELD_ELEMENTS // (self.pitch * self.inner))
        most = max(1, (held - down.reach) // down.stride + 1)
        turns = -(-down.results // min(most, settings.get("high", ROWS), down.results))
        self.rows = -(-down.results // turns)
        """Rows of results that it computes."""
        self.size = down.read_by(self.rows) * self.pitch * self.inner
        """Elements that it holds."""

    def _carrier(self) -> Carrier | None:
        """How elements are combined in any order; None where they keep theirs."""
        ops = list(self.op.body.block.ops)
        if len(ops) != 2 or {*ops[0].operands} != {*self.op.body.block.args}:
            return None
        found = carrier_of(ops[0].name, self.kind)
        return None if found is None or (found.function == "add" and is_float(self.kind)) else found

    # ---- the kernel ----

    def run(self) -> Step | None:
        """One kernel: a program for some rows and columns of results. None where it does not compute all results."""
        b, planes, down, along = self.b, self.planes, self.planes.down, self.planes.along
        shape = shape_of(self.op.results[0])
        self.outer = shape[: planes.first]
        grid = [*self.outer, blocks_of(down.results, self.rows), blocks_of(along.results, self.columns)]
        grid.append(planes.inner // self.inner)
        frame = self.writer.frame()
        frame.coordinate(product(grid), b.program_id(0))
        at = [frame.position(frame.access((1,), (i,)).indices[0]) for i in delinearize(d(0), grid)]
        self.before = at[: len(self.outer)]
        row, column = (b.multiply(i, b.position(n)) for i, n in zip(at[-3:-1], (self.rows, self.columns), strict=True))
        self.row, self.column = row, column
        self.inner_at = b.add(b.multiply(at[-1], b.position(self.inner)), self._across()) if self.inner > 1 else None
        kind = self.carrier.dtype if self.carrier else self.kind
        self.read = b.memory(kind, self.size)
        rows = b.position(self.rows)
        if down.results % self.rows:
            rows = b.apply("minimum", rows, b.apply("subtract", b.position(down.results), row))
        self._gather(rows)
        if self.carrier is not None:
            self.folded = b.memory(kind, self.rows * self.pitch * self.inner)
            self._each(b.position(0), rows, self._fold_down)
        done: list[bool] = []
        self._each(b.position(0), rows, lambda r: done.append(self._finish(r)))
        return self.writer.step((product(grid),)) if all(done) else None

    def _gather(self, rows: SSAValue) -> None:
        """Write what windows read, and what pads it."""
        b, down = self.b, self.planes.down
        count = b.add(b.multiply(b.apply("subtract", rows, b.position(1)), b.position(down.stride)),
                      b.position(down.reach))  # fmt: skip
        first = b.multiply(self.row, b.position(down.stride))

        def until(end: int) -> SSAValue:
            """How many of the program's rows lie before a row of the padded image."""
            here = b.apply("subtract", b.position(end), first)
            return b.apply("minimum", b.apply("maximum", here, b.position(0)), count)

        begin, end = until(down.low), until(down.low + down.size)
        init = self._init(self.writer.frame())
        place = self._place(self.pitch)

        def fill(r: SSAValue) -> None:
            b.store(self.read, b.add(self._line(r), place), init, None)

        def copy(r: SSAValue) -> None:
            b.store(self.read, b.add(self._line(r), place), self._elements(b.add(first, r)), None)

        if down.low > 0:
            self._each(b.position(0), begin, fill)
        self._each(begin, end, copy)
        if down.read_by(down.results) > down.low + down.size:
            self._each(end, count, fill)

    def _elements(self, row: SSAValue) -> SSAValue:
        """A row of what is read, with what pads it before and after."""
        b, planes, op = self.b, self.planes, self.op
        down, along, value = planes.down, planes.along, op.operands[0]
        frame, shape = self.writer.frame(), shape_of(value)
        indices = self._outer(frame)
        if down is not _ONE:
            y = frame.coordinate(down.size, b.apply("subtract", row, b.position(down.low)))
            indices.append(d(y))
        wide = along.read_by(along.results)
        across = b.iota(self.pitch, 0, 1 if self.inner == 1 else 2)
        start = b.multiply(self.column, b.position(along.stride))
        partial = wide < self.pitch or not is_covered(frame, along.results, self.columns)
        x = frame.coordinate(wide, b.add(start, across), partial=partial)
        conditions: list[Condition] = []
        indices.append(inside(d(x) - along.low, along.size, 1, conditions))
        indices += self._inner(frame, shape)
        access = IndexingMap(frame.domain, shape, tuple(indices), (), tuple(conditions))
        elements = self.writer.elements(frame)
        found = self._encoded(convert(b, op, elements(value, frame.simplify(access)), self.kind))
        mask = frame.mask(conditions, {d(x).text})
        return found if mask is None else b.apply("select", mask, found, self._init(frame))

    def _fold_down(self, r: SSAValue) -> None:
        """What the columns of windows combine to, for a row of results."""
        b, down = self.b, self.planes.down
        place = self._place(self.pitch)

        def item(n: SSAValue) -> SSAValue:
            row = b.add(b.multiply(r, b.position(down.stride)), b.multiply(n, b.position(down.dilation)))
            return b.load(self.read, b.add(self._line(row), place), None)

        found = self._over(down.window, b.position(1), item(b.position(0)), lambda n, x: self._combined(x, item(n)))
        b.store(self.folded, b.add(self._line(r), place), found, None)

    def _finish(self, r: SSAValue) -> bool:
        """A row of results, and what follows from them; whether that is all of the kernel's results."""
        b, op, planes = self.b, self.op, self.planes
        found = convert(b, op, self._windows(r), dtype_text(op.results[0].type))
        frame, shape = self.writer.frame(), shape_of(op.results[0])
        indices = self._outer(frame)
        if planes.down is not _ONE:
            indices.append(d(frame.coordinate(planes.down.results, b.add(self.row, r))))
        across = b.iota(self.columns, 0, 1 if self.inner == 1 else 2)
        x = frame.coordinate(planes.along.results, b.add(self.column, across),
                             partial=not is_covered(frame, planes.along.results, self.columns))  # fmt: skip
        indices += [d(x), *self._inner(frame, shape)]
        access = frame.access(shape, [0 if n == 1 else i for n, i in zip(shape, indices, strict=True)])
        elements = self.writer.elements(frame)
        elements.know(op.results[0], access, found)
        related = relate(self.launch, elements, {op.results[0]: access})
        if any(value not in related for value in self.writer.values):
            return False
        for j, value in enumerate(self.writer.values):
            self.writer.store(j, frame, related[value], elements(value, related[value]))
        return True

    def _windows(self, r: SSAValue) -> SSAValue:
        """What the windows of a row of results combine to."""
        b, down, along = self.b, self.planes.down, self.planes.along
        place = self._place(self.columns, along.stride)
        start = self._init(self.writer.frame())
        zero = b.position(0)

        def moved(n: SSAValue) -> SSAValue:
            return b.add(b.multiply(n, b.position(along.dilation * self.inner)), place)

        if self.carrier is not None:

            def column(n: SSAValue, x: SSAValue) -> SSAValue:
                return self._combined(x, b.load(self.folded, b.add(self._line(r), moved(n)), None))

            found = self._over(along.window, zero, b.broadcast(start, static_shape(place)), column)
            return self.carrier.decode(b, found)

        def row(y: SSAValue, sums: SSAValue) -> SSAValue:
            at = b.add(b.multiply(r, b.position(down.stride)), b.multiply(y, b.position(down.dilation)))

            def element(x: SSAValue, sums: SSAValue) -> SSAValue:
                item = b.load(self.read, b.add(self._line(at), moved(x)), None)
                return apply_region(b, self.op.body.block, [sums, item])[0]

            return self._over(along.window, zero, sums, element)

        return self._over(down.window, zero, b.broadcast(start, static_shape(place)), row)

    # ---- what they share ----

    def _init(self, frame: Frame) -> SSAValue:
        """What windows begin with, and read beyond the edges."""
        found = self.writer.elements(frame)(self.op.operands[1], frame.access((), ()))
        return self._encoded(convert(self.b, self.op, found, self.kind))

    def _encoded(self, x: SSAValue) -> SSAValue:
        return x if self.carrier is None else self.carrier.encode(self.b, x)

    def _combined(self, x: SSAValue, y: SSAValue) -> SSAValue:
        assert self.carrier is not None
        return self.b.apply(_FUNCTIONS[self.carrier.function], x, y)

    def _outer(self, frame: Frame) -> list[Size]:
        """The indices of the program's planes, as coordinates of a frame."""
        pairs = zip(self.outer, self.before, strict=True)
        return [0 if extent == 1 else d(frame.coordinate(extent, tile)) for extent, tile in pairs]

    def _inner(self, frame: Frame, shape: Sequence[Size]) -> Sequence[Size]:
        """The indices after both dimensions."""
        rest = shape[self.planes.last + 1 :]
        if self.inner_at is None:
            return [0] * len(rest)
        return delinearize(d(frame.coordinate(self.planes.inner, self.inner_at)), rest)

    def _across(self) -> SSAValue:
        return self.b.iota(self.inner, 1, 2)

    def _line(self, row: SSAValue) -> SSAValue:
        """Where a row begins in memory of the program's own."""
        return self.b.multiply(row, self.b.position(self.pitch * self.inner))

    def _place(self, columns: int, stride: int = 1) -> SSAValue:
        """Where columns of a row lie, some apart."""
        b = self.b
        if self.inner == 1:
            return b.multiply(b.iota(columns, 0, 1), b.position(stride))
        return b.add(b.multiply(b.iota(columns, 0, 2), b.position(stride * self.inner)), self._across())

    def _over(
        self, count: int, first: SSAValue, start: SSAValue, body: Callable[[SSAValue, SSAValue], SSAValue]
    ) -> SSAValue:
        """What elements of a window from the first on make of `start`: so few are no loop."""
        b = self.b
        if count > UNROLLED:
            return b.loop(first, b.position(count), 1, [start], lambda n, x: [body(n, x[0])], rolled=True)[0]
        for n in range(known_position(first) or 0, count):
            start = body(b.position(n), start)
        return start

    def _each(self, lower: SSAValue, upper: SSAValue, body: Callable[[SSAValue], None]) -> None:
        """A loop that carries nothing."""

        def turn(at: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body(at)
            return []

        self.b.loop(lower, upper, 1, [], turn, rolled=True)


__all__ = ["pooling"]
