"""What the kernels of attention share: the problem, the end of each row, and the kernel that combines splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.analysis.indexing.maps import IndexingMap, d
from gcomp.dims import Ranges, Size, product
from gcomp.dtypes import dtype_of
from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.types import ELEMENT_TYPES, dtype_text, shape_of
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements import Elements
from gcomp.lowering.tiles.elements.elementwise import convert
from gcomp.lowering.tiles.frames import Frame, delinearize
from gcomp.lowering.tiles.schedules.kernel import KernelWriter, Step, blocks_of, power_of_two
from gcomp.lowering.tiles.schedules.relations import relate
from gcomp.lowering.tiles.tile import element, static_shape
from gcomp.records import record

BATCH, QUERY, KEY, FEATURE, OUT, SPLIT = range(6)
"""The coordinates of the iteration space."""

WHOLE = 256
"""Heads of up to so many features are held in one tile."""

Carried = Sequence[SSAValue]


@record
class Problem:
    """An attention op: its operands, sizes, and numbers, rounded to the operands' type as the op means them."""

    op: hlo.CompositeOp
    kind: str
    batch: tuple[Size, ...]
    queries: Size
    keys: Size
    features: Size
    outs: Size
    scale: float
    fill: float
    safe: bool

    @staticmethod
    def of(op: hlo.CompositeOp) -> Problem:
        """The attributes and shapes of an attention op."""
        query, key, value = (shape_of(v) for v in op.operands[:3])
        kind = dtype_text(op.operands[0].type)
        attributes = op.attributes_of()

        def round_to_f32(number: float) -> float:
            return float(np.asarray(number).astype(dtype_of(kind)).astype(np.float64))

        with np.errstate(over="ignore"):
            scale, fill = round_to_f32(attributes["scale"]), round_to_f32(attributes.get("fill", 0.0))
        n = len(query) - 2
        return Problem(
            op, kind, query[:n], query[n], key[n], query[-1], value[-1], scale, fill, bool(attributes.get("safe"))
        )

    @property
    def wide(self) -> str:
        """The type of scores and sums."""
        return "f64" if self.kind == "f64" else "f32"

    @property
    def rows(self) -> Size:
        """How many batches there are."""
        return product(self.batch)

    def extents(self) -> tuple[Size, ...]:
        """The extents of the coordinates."""
        return (self.rows, self.queries, self.keys, self.features, self.outs)


def combine_splits(launch: LaunchOp, problem: Problem, name: str, ranges: Ranges, splits: int, power: str) -> Step:
    """The kernel that makes one result of what the splits found."""
    writer = KernelWriter(launch, name, ranges)
    b, frame = writer.b, writer.frame()
    rows, outs = problem.rows * problem.queries, min(WHOLE, max(16, power_of_two(size_of(problem.outs))))
    block = max(1, min(1024 // outs, power_of_two(rows) if isinstance(rows, int) else 1024))
    row = b.add(b.multiply(b.program_id(0), b.position(block)), b.iota(block, 0, 2))
    column = b.add(b.multiply(b.program_id(1), b.position(outs)), b.iota(outs, 1, 2))
    for extent in (rows, problem.outs, splits):
        frame.declare(extent)
    bind(frame, 0, row, block)
    bind(frame, 1, column, outs)
    number = ELEMENT_TYPES[problem.wide]
    peaks, totals, sums = (writer.scratch(n, number, "in") for n in range(3))

    def body(split: SSAValue, tiles: Carried) -> Carried:
        frame.bind(2, split)
        at = d(2) * rows + (0 if rows == 1 else d(0))
        mask = frame.mask((), {d(0).text})
        place, whole = frame.position(at), frame.position(at * problem.outs + (0 if problem.outs == 1 else d(1)))
        peak, total = b.load(peaks, place, mask), b.load(totals, place, mask)
        found = b.load(sums, whole, frame.mask((), {d(0).text, d(1).text}))
        greatest = b.apply("maximum", tiles[0], peak)
        base = reference_score(b, greatest)
        kept, new = (b.apply(power, b.apply("subtract", x, base)) for x in (tiles[0], peak))
        return [
            greatest,
            b.broadcast(b.add(b.multiply(tiles[1], kept), b.multiply(total, new)), (block, 1)),
            b.broadcast(b.add(b.multiply(tiles[2], kept), b.multiply(found, new)), (block, outs)),
        ]

    wide = problem.wide
    start = [b.constant(float("-inf"), wide, (block, 1)), b.constant(0.0, wide, (block, 1)),
             b.constant(0.0, wide, (block, outs))]  # fmt: skip
    carried = b.loop(b.position(0), b.position(splits), 1, start, body)
    frame.tiles[2] = None
    query = delinearize(d(0), (*problem.batch, problem.queries))
    finish(writer, problem, frame, (*query, 0 if problem.outs == 1 else d(1)), carried)
    return writer.step((blocks_of(rows, block), blocks_of(problem.outs, outs)))


def finish(writer: KernelWriter, problem: Problem, frame: Frame, indices: Sequence[Size], carried: Carried) -> None:
    """The weighted mean of the values, what follows from it, and the stores."""
    b, op = writer.b, problem.op
    _, total, found = carried
    mean = b.apply("divide", found, b.broadcast(total, static_shape(found)))
    if problem.safe:
        seen = b.apply("gt", total, like(b, total, 0.0))
        mean = b.apply("select", b.broadcast(seen, static_shape(found)), mean, like(b, mean, 0.0))
    low = writer.ranges.bounds(problem.keys)[0]
    if not low:
        # Of no keys at all the sum is 0.
        some = b.apply("gt", frame.position(problem.keys), b.position(0))
        mean = b.apply("select", b.broadcast(some, static_shape(found)), mean, like(b, mean, 0.0))
    result = op.results[0]
    access = frame.access(shape_of(result), indices)
    elements = writer.elements(frame)
    elements.know(result, access, convert(b, op, mean, dtype_text(result.type)))
    places = relate(writer.launch, elements, {result: access})
    for j, value in enumerate(writer.values):
        if value not in places:
            raise UnsupportedError(
                "a result of an attention kernel has other elements than the attention", where=where(op)
            )
        place: IndexingMap = places[value]
        writer.store(j, frame, place, elements(value, place))


# ---- tiles ----------------------------------------------------------------------------------------------------------


def scalar(frame: Frame, size: Size) -> SSAValue:
    return frame.position(frame.simplify(frame.access((1,), (size,))).indices[0])


def size_of(size: Size) -> int:
    return size if isinstance(size, int) else 1 << 30


def bind(frame: Frame, coordinate: int, at: SSAValue, block: int, partial: bool | None = None) -> None:
    extent = frame.extents[coordinate]
    if partial is None:
        partial = extent == 0 or frame.ranges.divisible(extent, block) is not True
    frame.bind(coordinate, at, partial=partial)


def like(b: TileBuilder, x: SSAValue, number: float) -> SSAValue:
    return b.constant(number, element(x))


def reference_score(b: TileBuilder, peak: SSAValue) -> SSAValue:
    """What is subtracted from scores. Of a query that has seen no key the greatest score is -inf: 0 then."""
    return b.apply("select", b.apply("eq", peak, like(b, peak, float("-inf"))), like(b, peak, 0.0), peak)


def row_of(b: TileBuilder, x: SSAValue, function: str) -> SSAValue:
    """All elements of each row in one."""
    combine: Callable[[Carried, Carried], Carried] = lambda a, c: [b.apply(function, a[0], c[0])]  # noqa: E731
    return b.reduce([x], 1, combine)[0]


def tile_of(elements: Elements, value: SSAValue, indices: Sequence[Size], coordinates: Sequence[int]) -> SSAValue:
    """The elements of an operand; 0 beyond the extents of these coordinates, over which products are summed."""
    b, frame = elements.b, elements.frame
    found = elements(value, frame.access(shape_of(value), indices))
    mask = frame.mask((), [d(c).text for c in coordinates if frame.tiles[c] is not None])
    return found if mask is None else b.apply("select", mask, found, b.constant(0, element(found)))
