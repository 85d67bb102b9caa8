"""select_and_scatter, which is the gradient of a maximum over windows, without atomics.

One kernel finds for each window the element that it selects; in a second one each element goes over the windows that
it lies in, in their order, and combines what those bring that selected it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import Condition, IndexingMap, d, linear
from gcomp.dims import Ranges, Size, floordiv, mod, product
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.elements.elementwise import apply_region, convert
from gcomp.lowering.tiles.elements.folding import turns
from gcomp.lowering.tiles.frames import Frame, delinearize
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
from gcomp.lowering.tiles.schedules.relations import relate
from gcomp.lowering.tiles.tile import static_shape


def selection(launch: LaunchOp, op: hlo.SelectAndScatterOp, name: str, ranges: Ranges, settings: Settings) -> Scheduled:
    """The kernels of a select_and_scatter."""
    problem = _Selection(launch, op, name, ranges, settings)
    windows = problem.choose()
    number = problem.number
    return Scheduled((windows, problem.combine()), (Scratch(number, product(problem.counts)),))


class _Selection:
    def __init__(
        self, launch: LaunchOp, op: hlo.SelectAndScatterOp, name: str, ranges: Ranges, settings: Settings
    ) -> None:
        self.launch, self.op, self.name, self.ranges, self.settings = launch, op, name, ranges, settings
        window = op.window()
        self.shape, self.counts = shape_of(op.operand), shape_of(op.source)
        self.window: tuple[int, ...] = tuple(window["window_dimensions"])
        self.strides: tuple[int, ...] = tuple(window["window_strides"])
        self.lows: tuple[int, ...] = tuple([low for low, _ in window["padding"]])
        self.number = KernelWriter(launch, name, ranges).b.index

    def _frame(self, writer: KernelWriter, count: Size) -> tuple[Frame, Size]:
        b, frame = writer.b, writer.frame()
        block = self.settings.get("block", 512)
        block = min(block, power_of_two(count)) if isinstance(count, int) else block
        base = b.multiply(b.program_id(0), b.position(block))
        frame.coordinate(count, b.add(base, b.iota(block, 0, 1)), partial=not is_covered(frame, count, block))
        return frame, blocks_of(count, block)

    def choose(self) -> Step:
        """Of each window the place of the element that it selects, or -1."""
        writer = KernelWriter(self.launch, f"{self.name}_select", self.ranges)
        b, op = writer.b, self.op
        frame, grid = self._frame(writer, product(self.counts))
        elements = writer.elements(frame)
        own = delinearize(d(0), self.counts)
        lanes = static_shape(frame.position(d(0)))
        kind = dtype_text(op.operand.type)

        def body(turn: Size, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            best, place = carried
            offsets = delinearize(turn, self.window)
            at = [i * s + o - low for i, s, o, low in zip(own, self.strides, offsets, self.lows, strict=True)]
            conditions = [Condition(i, 0, n) for i, n in zip(at, self.shape, strict=True)]
            read = _where(frame, self.shape, at, conditions)
            item = b.broadcast(elements(op.operand, read), lanes)
            (keeps,) = apply_region(b, op.select.block, [best, item])
            first = b.apply("lt", place, b.position(0))
            taken = b.apply("or", first, b.apply("not", b.broadcast(keeps, lanes)))
            inside = b.both(frame.mask(read.conditions, ()), taken) or taken
            inside = b.broadcast(inside, lanes)
            here = b.broadcast(frame.position(linear(self.shape, at)), lanes)
            return [b.apply("select", inside, item, best), b.apply("select", inside, here, place)]

        start = [b.constant(0, kind, lanes), b.constant(-1, self.number, lanes)]
        _, place = turns(elements, product(self.window), start, body)
        b.store(writer.scratch(0, self.number, "out"), frame.position(d(0)), place, frame.full_mask())
        return writer.step((grid,))

    def combine(self) -> Step:
        """Each element takes what the windows bring that selected it."""
        writer = KernelWriter(self.launch, self.name, self.ranges)
        b, op = writer.b, self.op
        frame, grid = self._frame(writer, product(self.shape))
        elements = writer.elements(frame)
        own = delinearize(d(0), self.shape)
        lanes = static_shape(frame.position(d(0)))
        kind = dtype_text(op.results[0].type)
        scratch = writer.scratch(0, self.number, "in")

        def body(turn: Size, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            # The last offset in a window belongs to the first window.
            offsets = [n - 1 - o for n, o in zip(self.window, delinearize(turn, self.window), strict=True)]
            distances = [i + low - o for i, low, o in zip(own, self.lows, offsets, strict=True)]
            at = [floordiv(x, s) for x, s in zip(distances, self.strides, strict=True)]
            conditions = [Condition(i, 0, n) for i, n in zip(at, self.counts, strict=True)]
            conditions += [Condition(mod(x, s), 0, 1) for x, s in zip(distances, self.strides, strict=True) if s != 1]
            at = [0 if n == 1 else i for i, n in zip(at, self.counts, strict=True)]
            read = _where(frame, self.counts, at, conditions)
            mask = b.both(frame.full_mask(), frame.mask(read.conditions, ()))
            mask = None if mask is None else b.broadcast(mask, lanes)
            place = b.broadcast(frame.position(linear(self.counts, at)), lanes)
            hits = b.apply("eq", b.load(scratch, place, mask), b.broadcast(frame.position(d(0)), lanes))
            hits = b.both(mask, hits) or hits
            item = b.broadcast(convert(b, op, elements(op.source, read), kind), lanes)
            (after,) = apply_region(b, op.scatter.block, [carried[0], item])
            return [b.apply("select", hits, b.broadcast(after, lanes), carried[0])]

        init = convert(b, op, elements(op.init_value, frame.access((), ())), kind)
        found: Sequence[SSAValue] = [b.broadcast(init, lanes)]
        if 0 not in self.counts:
            found = turns(elements, product(self.window), found, body)
        result = op.results[0]
        access = frame.access(self.shape, own)
        elements.know(result, access, found[0])
        places = relate(self.launch, elements, {result: access})
        for j, value in enumerate(writer.values):
            if value not in places:
                raise UnsupportedError("a result has other elements than the select_and_scatter", where=where(op))
            writer.store(j, frame, places[value], elements(value, places[value]))
        return writer.step((grid,))


def _where(frame: Frame, shape: tuple[Size, ...], at: Sequence[Size], conditions: Sequence[Condition]) -> IndexingMap:
    return frame.simplify(IndexingMap(frame.domain, shape, tuple(at), (), tuple(conditions)))


__all__ = ["selection"]
