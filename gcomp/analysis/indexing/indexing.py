"""Indexing with run-time indices: where a slice lies is data, what lies within it is not."""

from __future__ import annotations

from gcomp.analysis.indexing.maps import Condition, IndexingMap, Ranging, coordinates, identity, scalar
from gcomp.analysis.indexing.simplify import simplify
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.dims import Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.structures import GatherDimensions, ScatterDimensions
from gcomp.ir.types import shape_of

Shape = tuple[Size, ...]


@maps(hlo.DynamicSliceOp)
def dynamic_slice(op: hlo.DynamicSliceOp) -> list[Maps]:
    """Element x of a slice that begins anywhere from 0 to `size - width`."""
    domain, shape = shape_of(op.result), shape_of(op.operand)
    ranging = Ranging()
    sizes = zip(coordinates(domain), domain, shape, strict=True)
    indices = tuple([x + ranging(size - width + 1) for x, width, size in sizes])
    moving = [k for k, (width, size) in enumerate(zip(domain, shape, strict=True)) if width != size]
    found = IndexingMap(domain, shape, indices, tuple(ranging.sizes))
    return [[found.loosen(*moving) if moving else found, *[scalar(domain)] * len(op.start_indices)]]


@maps(hlo.DynamicUpdateSliceOp)
def dynamic_update_slice(op: hlo.DynamicUpdateSliceOp) -> list[Maps]:
    """Each element is the operand's at its own place, or one of the update's."""
    domain, update = shape_of(op.operand), shape_of(op.update)
    ranging, conditions = Ranging(), list[Condition]()
    indices: list[Size] = []
    for x, width, size in zip(coordinates(domain), update, domain, strict=True):
        if width == size:
            indices.append(x)
            continue
        indices.append(ranging(width))
        conditions.append(Condition(x - indices[-1], 0, size - width + 1))
    found = simplify(IndexingMap(domain, update, tuple(indices), tuple(ranging.sizes), tuple(conditions)))
    moving = [k for k, (width, size) in enumerate(zip(update, domain, strict=True)) if width != size]
    kept = identity(domain).loosen()
    return [[kept, found.loosen(*moving) if moving else found, *[scalar(domain)] * len(op.start_indices)]]


@maps(hlo.GatherOp)
def gather(op: hlo.GatherOp) -> list[Maps]:
    """Slices at clamped starts."""
    return [list(gather_maps(shape_of(op.result), shape_of(op.operand), shape_of(op.start_indices), op.dimensions))]


def gather_maps(domain: Shape, shape: Shape, starts: Shape, n: GatherDimensions) -> tuple[IndexingMap, IndexingMap]:
    """The maps of the operand and of the start indices; dimensions of the result are batch or offset dimensions."""
    own = coordinates(domain)
    batch = [i for i in range(len(domain)) if i not in n.offset_dims]
    axes = [j for j in range(len(starts)) if j != n.index_vector_dim]
    place = dict(zip(axes, batch, strict=True))
    batching = dict(zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=True))
    offsets, ranging = iter(n.offset_dims), Ranging()
    indices: list[Size] = []
    moving: list[int] = []
    for k, size in enumerate(shape):
        index: Size = 0
        width: Size = 1
        if k in batching:
            index = own[place[batching[k]]]
        elif k not in n.collapsed_slice_dims:
            offset = next(offsets)
            index, width = own[offset], domain[offset]
        if k in n.start_index_map and size != width:
            index = index + ranging(size - width + 1)
            moving.append(k)
        indices.append(index)
    x = IndexingMap(domain, shape, tuple(indices), tuple(ranging.sizes))
    ranging = Ranging()
    at = tuple([own[place[j]] if j in place else ranging(size) for j, size in enumerate(starts)])
    return x.loosen(*moving) if moving else x, IndexingMap(domain, starts, at, tuple(ranging.sizes))


@maps(hlo.ScatterOp)
def scatter(op: hlo.ScatterOp) -> list[Maps]:
    """Each element is the input's at its own place, with any updates whose windows may be put there."""
    domain, count = shape_of(op.inputs[0]), len(op.inputs)
    indices, update = shape_of(op.scatter_indices), shape_of(op.updates[0])
    starts, found = scatter_maps(domain, indices, update, op.dimensions)
    row: Maps = [*[identity(domain).loosen()] * count, starts, *[found] * count]
    return [row] * count


def scatter_maps(domain: Shape, indices: Shape, update: Shape, n: ScatterDimensions) -> tuple[IndexingMap, IndexingMap]:
    """The maps of the scatter indices and of an update; dimensions of the update are window or scatter dimensions."""
    own = coordinates(domain)
    fixed = {*n.inserted_window_dims, *n.input_batching_dims}
    window = dict(zip(n.update_window_dims, [k for k in range(len(domain)) if k not in fixed], strict=True))
    batching = dict(zip(n.scatter_indices_batching_dims, n.input_batching_dims, strict=True))
    axes = iter([j for j in range(len(indices)) if j != n.index_vector_dim])
    ranging, conditions = Ranging(), list[Condition]()
    at: list[Size] = []
    moving: list[int] = []
    for u, size in enumerate(update):
        axis = None if u in window else next(axes)
        if axis in batching:
            at.append(own[batching[axis]])
        elif u in window and window[u] not in n.scatter_dims_to_operand_dims:
            at.append(own[window[u]])
            conditions.append(Condition(at[-1], 0, size))
        else:
            at.append(ranging(size))
            moving.append(u)
    found = simplify(IndexingMap(domain, update, tuple(at), tuple(ranging.sizes), tuple(conditions)))
    ranging = Ranging()
    read = tuple([own[batching[j]] if j in batching else ranging(size) for j, size in enumerate(indices)])
    return IndexingMap(domain, indices, read, tuple(ranging.sizes)), found.loosen(*moving)
