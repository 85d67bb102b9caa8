"""Ops that combine elements, done one element after the other: where no schedule of their own does it faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import Condition, IndexingMap, d
from gcomp.analysis.indexing.movement import inside
from gcomp.analysis.indexing.table import operand_maps
from gcomp.analysis.windows import offsets_of
from gcomp.dims import Size, product
from gcomp.dtypes import dtype_of, is_float
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles.elements.elementwise import accumulator, apply_region, convert
from gcomp.lowering.tiles.elements.table import Elements, elements_of, refusal
from gcomp.lowering.tiles.frames import delinearize
from gcomp.lowering.tiles.tile import broadcast_shapes, static_shape

Fold = Callable[[Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]
"""Of what is accumulated and the next elements: what is accumulated then."""


def turns(
    elements: Elements, count: Size, carried: Sequence[SSAValue],
    body: Callable[[Size, Sequence[SSAValue]], Sequence[SSAValue]],
) -> Sequence[SSAValue]:  # fmt: skip
    """A loop of `count` iterations; the body takes the iteration's number as a coordinate."""
    frame, b = elements.frame, elements.b
    if count == 0:
        return carried
    if count == 1:
        return body(0, carried)
    coordinate = frame.declare(count)

    def turn(index: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        frame.bind(coordinate, index)
        with elements.scope():
            return body(d(coordinate), values)

    found = b.loop(b.position(0), frame.position(count), 1, carried, turn)
    frame.tiles[coordinate] = None
    return found


def tile_shape(elements: Elements, access: IndexingMap) -> tuple[int, ...]:
    """The shape of the tile of an access's elements."""
    tiles = [elements.frame.tiles[int(name[2:])] for name in elements.frame.used(access)]
    return broadcast_shapes(*[static_shape(t) for t in tiles if t is not None])


@elements_of(hlo.ReduceOp, hlo.ReduceWindowOp)
def reduce(elements: Elements, op: hlo.ReduceOp | hlo.ReduceWindowOp, result: int, access: IndexingMap) -> SSAValue:
    """The init, combined with each element in turn."""
    count = len(op.operands) // 2
    ranges = ranges_of(op, result, 0) if isinstance(op, hlo.ReduceOp) else offsets_of(op)
    kinds = [accumulator(op.body.block, dtype_text(r.type)) for r in op.results]
    frame, b = elements.frame, elements.b
    inits = [
        convert(b, op, elements(v, frame.access((), ())), k) for v, k in zip(op.operands[count:], kinds, strict=True)
    ]
    shape = tile_shape(elements, access)
    start = [b.broadcast(init, shape) for init in inits]

    def body(turn: Size, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        ranged = delinearize(turn, ranges)
        items: list[SSAValue] = []
        for n in range(count):
            if isinstance(op, hlo.ReduceOp):
                read = elements.reads(op, result, n, access, ranged)
            else:
                read = in_window(elements, op, n, access, ranged)
            item = convert(b, op, elements(op.operands[n], read), kinds[n])
            mask = frame.mask([c for c in read.conditions if c not in access.conditions], ())
            items.append(item if mask is None else b.apply("select", mask, item, inits[n]))
        after = apply_region(b, op.body.block, [*values, *items])
        return [b.broadcast(v, shape) for v in after]

    found = turns(elements, product(ranges), start, body)
    return convert(b, op, found[result], dtype_text(op.results[result].type))


def in_window(
    elements: Elements, op: hlo.ReduceWindowOp, n: int, access: IndexingMap, offset: Sequence[Size]
) -> IndexingMap:
    """The element at an offset in a window. The op's indexing map leaves out offsets at which there never is one."""
    shape, w = shape_of(op.operands[n]), op.window()
    conditions: list[Condition] = [*access.conditions]
    indices: list[Size] = []
    for i, size in enumerate(shape):
        start = access.indices[i] * w["window_strides"][i] - w["padding"][i][0]
        indices.append(inside(start + offset[i] * w["window_dilations"][i], size, w["base_dilations"][i], conditions))
    frame = elements.frame
    return frame.simplify(IndexingMap(frame.domain, shape, tuple(indices), (), tuple(conditions)))


def ranges_of(op: Operation, result: int, operand: int) -> tuple[Size, ...]:
    """The sizes of the range variables of an op's map."""
    m = operand_maps(op)[result][operand]
    if m is None or not m.exact:
        raise refusal(op, "what it reads has no formula")
    return m.ranges


@elements_of(hlo.DotGeneralOp, hlo.DotOp, hlo.ConvolutionOp)
def contraction(
    elements: Elements, op: hlo.DotGeneralOp | hlo.DotOp | hlo.ConvolutionOp, result: int, access: IndexingMap
) -> SSAValue:
    """The sum of products, one by one."""
    ranges = terms_of(op)
    kind = sum_type(op)
    b, frame = elements.b, elements.frame
    shape = tile_shape(elements, access)

    def body(turn: Size, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        ranged = delinearize(turn, ranges)
        factors: list[SSAValue] = []
        for n in range(2):
            read = elements.reads(op, 0, n, access, ranged)
            factor = convert(b, op, elements(op.operands[n], read), kind)
            mask = frame.mask([c for c in read.conditions if c not in access.conditions], ())
            factors.append(factor if mask is None else b.apply("select", mask, factor, b.constant(0, kind)))
        return [b.broadcast(b.add(values[0], b.multiply(*factors)), shape)]

    (found,) = turns(elements, product(ranges), [b.constant(0, kind, shape)], body)
    return convert(b, op, found, dtype_text(op.results[0].type))


def terms_of(op: Operation) -> tuple[Size, ...]:
    """The sizes of what a contraction sums over."""
    return ranges_of(op, 0, 0)


def sum_type(op: Operation) -> str:
    """The type in which products are added: f32 for narrow floats, and the result's for others."""
    result = dtype_text(op.results[0].type)
    wide = max((dtype_text(v.type) for v in (*op.operands[:2], op.results[0])), key=lambda t: dtype_of(t).itemsize)
    if is_float(result):
        return "f64" if wide == "f64" else "f32"
    return result
