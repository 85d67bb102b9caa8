"""Ops that read where data say: the index is loaded and clamped, and becomes a coordinate of its own."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import Condition, IndexingMap, d
from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import sizes_of
from gcomp.ir.types import shape_of
from gcomp.lowering.tiles.elements.table import Elements, elements_of
from gcomp.lowering.tiles.functions import kind_of
from gcomp.lowering.tiles.tile import element


def clamp(elements: Elements, index: SSAValue, extent: Size) -> Size:
    """A coordinate that holds an index tile, brought between 0 and `extent - 1`."""
    b, frame = elements.b, elements.frame
    if extent == 1:
        return 0
    last = frame.position(extent - 1)
    if kind_of(element(index)) == "unsigned":
        # Beyond half of its range an unsigned index would be negative as a signed one: it is clamped before.
        wide = b.cast(index, "i64" if element(index) in ("ui32", "ui16", "ui8") else element(index))
        if kind_of(element(wide)) == "unsigned":
            wide = b.bitcast(b.apply("minimum", wide, b.constant((1 << 63) - 1, element(wide))), "i64")
    else:
        wide = index
    kind = element(wide)
    limit = last if element(last) == kind else b.cast(last, kind)
    low = b.apply("maximum", wide, b.constant(0, kind))
    if kind in ("i8", "i16"):
        inside = b.cast(low, b.index)
        place = b.apply("minimum", inside, last)
    else:
        place = b.cast(b.apply("minimum", low, limit), b.index)
    return d(frame.coordinate(extent, place))


@elements_of(hlo.DynamicSliceOp)
def dynamic_slice(elements: Elements, op: hlo.DynamicSliceOp, result: int, access: IndexingMap) -> SSAValue:
    """The operand from a start that data give, brought to where the whole slice fits."""
    starts = _starts(elements, op, op.operands[1:])
    operand, shape = op.operands[0], shape_of(op.operands[0])
    sizes = shape_of(op.results[0])
    indices = [
        clamp(elements, start, n - size + 1) + index
        for start, n, size, index in zip(starts, shape, sizes, access.indices, strict=True)
    ]
    return elements(operand, _at(elements, shape, indices, access.conditions))


@elements_of(hlo.DynamicUpdateSliceOp)
def dynamic_update_slice(
    elements: Elements, op: hlo.DynamicUpdateSliceOp, result: int, access: IndexingMap
) -> SSAValue:
    """The update's element where the index falls in it, and the operand's elsewhere."""
    starts = _starts(elements, op, op.operands[2:])
    operand, update = op.operands[:2]
    shape, sizes = shape_of(operand), shape_of(update)
    conditions: list[Condition] = []
    indices: list[Size] = []
    for start, n, size, index in zip(starts, shape, sizes, access.indices, strict=True):
        own = index if size == n else index - clamp(elements, start, n - size + 1)
        indices.append(own)
        if size != n:
            conditions.append(Condition(own, 0, size))
    read = _at(elements, sizes, indices, (*access.conditions, *conditions))
    inside = elements(update, read)
    mask = elements.frame.mask(conditions, ())
    if mask is None:
        return inside
    return elements.b.apply("select", mask, inside, elements(operand, elements.frame.simplify(access)))


def updated_place(elements: Elements, op: hlo.DynamicUpdateSliceOp, indices: Sequence[Size]) -> IndexingMap:
    """The element of the result that takes an update's element, which has these indices."""
    shape, sizes = shape_of(op.operands[0]), shape_of(op.operands[1])
    starts = _starts(elements, op, op.operands[2:])
    found = [
        index if size == n else clamp(elements, start, n - size + 1) + index
        for start, n, size, index in zip(starts, shape, sizes, indices, strict=True)
    ]
    return _at(elements, shape, found, ())


def _starts(elements: Elements, op: Operation, values: Sequence[SSAValue]) -> list[SSAValue]:
    """The scalars that say where a slice begins."""
    return [elements(v, elements.frame.access((), ())) for v in values]


def _at(
    elements: Elements, shape: Sequence[Size], indices: Sequence[Size], conditions: Sequence[Condition]
) -> IndexingMap:
    frame = elements.frame
    return frame.simplify(IndexingMap(frame.domain, tuple(shape), tuple(indices), (), tuple(conditions)))


@elements_of(hlo.GatherOp)
def gather(elements: Elements, op: hlo.GatherOp, result: int, access: IndexingMap) -> SSAValue:
    """Slices of the operand from starts that the index vectors give, each brought to where its slice fits."""
    operand, starts = op.operands
    shape, numbers = shape_of(operand), op.dimensions
    rank = len(access.indices)
    offsets = list(numbers.offset_dims)
    batch = [access.indices[i] for i in range(rank) if i not in offsets]
    sizes = sizes_of(op.slice_sizes)
    taken = [
        k for k in range(len(shape)) if k not in numbers.collapsed_slice_dims and k not in numbers.operand_batching_dims
    ]
    indices: list[Size] = [0] * len(shape)
    for k, i in zip(taken, offsets, strict=True):
        indices[k] = access.indices[i]
    vector = numbers.index_vector_dim
    kept = [i for i in range(len(shape_of(starts))) if i != vector]
    for component, k in enumerate(numbers.start_index_map):
        if sizes[k] == shape[k]:
            continue
        place: list[Size] = [component] * len(shape_of(starts))
        for i, index in zip(kept, batch, strict=True):
            place[i] = index
        found = elements(starts, _at(elements, shape_of(starts), place, access.conditions))
        indices[k] = indices[k] + clamp(elements, found, shape[k] - sizes[k] + 1)
    for k, i in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        indices[k] = batch[kept.index(i)]
    return elements(operand, _at(elements, shape, indices, access.conditions))
