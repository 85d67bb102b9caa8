"""Derivatives of gather, scatter, sort and top_k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.autodiff.movement import zeros
from gcomp.autodiff.sweeps import Maybe, Reverse, Row, register
from gcomp.autodiff.table import ByTangents, Expanded, Linear, chooses, tangents
from gcomp.decompositions.bodies import vectorize_block
from gcomp.dims import Size
from gcomp.ir import chlo, gathering, looping
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions, ScatterDimensions, sizes_of
from gcomp.ir.builder import Builder
from gcomp.ir.stablehlo.control import ReturnOp
from gcomp.ir.stablehlo.reduction import scalar_region
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor

# ---- gather ----


def bound_indices(b: Builder, indices: SSAValue, limit: SSAValue) -> SSAValue:
    """Indices in i64, not below 0 and not above a limit in i64 of their shape."""
    if dtype_text(indices.type) == "ui64":
        # Above the signed range, an index is too large, and not negative.
        top = b.full_like(indices, (1 << 63) - 1)
        indices = b.minimum(indices, top)
    return b.emit(hlo.ClampOp, b.full_like(limit, 0), b.convert(indices, "i64"), limit)


def _as_scatter(d: GatherDimensions) -> ScatterDimensions:
    return ScatterDimensions(*d)


def _gather(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    return _give_back(b, op, g, zeros(b, op.operand))


def _give_back(b: Builder, op: Any, g: SSAValue, total: SSAValue) -> SSAValue:
    """Each element is added to where it was taken from: at the indices, after they were clamped."""
    d: GatherDimensions = op.dimensions
    shape, sizes = shape_of(op.operand), sizes_of(op.slice_sizes)
    indices = op.start_indices
    tops = [b.reshape(b.dim(shape[i] - sizes[i]), (1,)) for i in d.start_index_map]
    if tops:
        limits = b.concatenate(tops, 0)
        if d.index_vector_dim == rank_of(indices):
            limits = b.broadcast(b.reshape(limits, ()), shape_of(indices), ())
        else:
            limits = b.broadcast(limits, shape_of(indices), (d.index_vector_dim,))
        indices = bound_indices(b, indices, limits)
    return b.emit(
        hlo.ScatterOp, total, indices, g, scatter_dimension_numbers=_as_scatter(d),
        indices_are_sorted=False, regions=(scalar_region(hlo.AddOp, element_of(g)),),
    )  # fmt: skip


class _Gathers(Linear):
    """Cotangents are added in place, as those of slices."""

    def pull(self, sweep: Reverse, op: Any, cotangents: Sequence[Maybe]) -> None:
        known, (cotangent,) = sweep.get(op.operand), cotangents
        if known is None or cotangent is None:
            super().pull(sweep, op, cotangents)
        elif sweep.wants(op.operand):
            sweep.put(op.operand, _give_back(sweep.b, op, cotangent, known))


register(_Gathers(_gather, lambda op: (0,)), hlo.GatherOp)


# ---- where a scatter's updates go ----


def flat(b: Builder, x: SSAValue) -> SSAValue:
    """The elements in row-major order."""
    return b.reshape(x, (dims.product(shape_of(x)),))


def targets(b: Builder, op: Any) -> tuple[SSAValue, SSAValue]:
    """For each element of a scatter's updates, which element of the input it meets, counted row by row, and if any."""
    d: ScatterDimensions = op.dimensions
    shape, update = shape_of(op.inputs[0]), shape_of(op.updates[0])
    batch = [i for i in range(len(update)) if i not in d.update_window_dims]
    joined = (*d.inserted_window_dims, *d.input_batching_dims)
    window = dict(zip([i for i in range(len(shape)) if i not in joined], d.update_window_dims, strict=True))
    # The indices' dims but that of the vectors are the updates' scatter dims, in order.
    rest = [i for i in range(rank_of(op.scatter_indices)) if i != d.index_vector_dim]
    flattened = b.full(update, 0, "i64")
    inside = b.full(update, True, "i1")
    for dim, size in enumerate(shape):
        place = b.full(update, 0, "i64")
        if dim in d.scatter_dims_to_operand_dims:
            place = b.broadcast(_component(b, op, d.scatter_dims_to_operand_dims.index(dim)), update, batch)
        elif dim in d.input_batching_dims:
            along = d.scatter_indices_batching_dims[d.input_batching_dims.index(dim)]
            place = b.iota(update, batch[rest.index(along)])
        if dim in window:
            place = b.add(place, b.iota(update, window[dim]))
        inside = b.emit(hlo.AndOp, inside, b.compare(place, b.full_like(place, 0), "GE"))
        inside = b.emit(hlo.AndOp, inside, b.compare(place, b.broadcast(b.dim(size), update, ()), "LT"))
        flattened = b.add(b.multiply(flattened, b.dim(size)), place)
    return flattened, inside


def _component(b: Builder, op: Any, number: int) -> SSAValue:
    """One component of all index vectors, in i64; a number too large for it is beyond all sizes, as it is itself."""
    indices, axis = op.scatter_indices, op.dimensions.index_vector_dim
    if axis < rank_of(indices):
        kept = [s for i, s in enumerate(shape_of(indices)) if i != axis]
        indices = b.reshape(b.slice_axis(indices, axis, number, number + 1), kept)
    if dtype_text(indices.type) == "ui64":
        indices = b.minimum(indices, b.full_like(indices, 1 << 62))
    return b.convert(indices, "i64")


def read(b: Builder, x: SSAValue, places: SSAValue, inside: SSAValue) -> SSAValue:
    """Elements of x at places counted row by row; 0 for those that are not inside."""
    if 0 in shape_of(x):
        return b.full(shape_of(places), 0, element_of(x))
    top = b.broadcast(b.dim(dims.product(shape_of(x)) - 1), shape_of(places), ())
    found = gathering.take(b, flat(b, x), b.emit(hlo.ClampOp, b.full_like(top, 0), places, top), 0)
    return b.select(inside, found, b.full_like(found, 0))


# ---- scatter ----


def _again(b: Builder, op: Any, target: SSAValue, updates: SSAValue, kind: Any = None) -> SSAValue:
    """The scatter of other updates to another target, with its own body or an op's."""
    region = op.update_computation.clone() if kind is None else scalar_region(kind, element_of(target))
    names = ("scatter_dimension_numbers", "indices_are_sorted", "unique_indices")
    properties = {name: op.properties[name] for name in names if name in op.properties}
    return b.emit(hlo.ScatterOp, target, op.scatter_indices, updates, regions=(region,), **properties)


def _add(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    return g if operand == 0 else read(b, g, *targets(b, op))


def _replace(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """Which update was the last at each place is found by scattering their numbers."""
    target, _, update = tangents
    if target is None and update is None:
        return [None]
    shape, count = shape_of(op.updates[0]), dims.product(shape_of(op.updates[0]))
    numbers = b.reshape(b.iota((count,), 0), shape)
    region = b.region([tensor((), "i64")] * 2, lambda args: [args[1]])
    names = ("scatter_dimension_numbers", "indices_are_sorted", "unique_indices")
    properties = {name: op.properties[name] for name in names if name in op.properties}
    nobody = b.full(shape_of(op.inputs[0]), -1, "i64")
    last = b.emit(hlo.ScatterOp, nobody, op.scatter_indices, numbers, regions=(region,), **properties)
    kept = b.compare(last, b.full_like(last, 0), "LT")
    old = zeros(b, op.inputs[0]) if target is None else target
    new = zeros(b, op.inputs[0]) if update is None else read(b, update, last, b.emit(hlo.NotOp, kept))
    return [b.select(kept, old, new)]


def _extreme(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """The mean over what is the result: what was there, and updates."""
    target, _, update = tangents
    if target is None and update is None:
        return [None]
    result, x = op.results[0], op.inputs[0]
    places, inside = targets(b, op)
    met = b.compare(op.updates[0], read(b, result, places, inside), "EQ")
    hits = b.convert(b.emit(hlo.AndOp, met, inside), element_of(x))
    stays = b.convert(b.compare(x, result, "EQ"), element_of(x))
    count = _again(b, op, stays, hits, hlo.AddOp)
    old = zeros(b, x) if target is None else b.multiply(target, stays)
    total = old if update is None else _again(b, op, old, b.multiply(update, hits), hlo.AddOp)
    return [b.divide(total, count)]


def _multiply(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """At indices that are all different: (x * u)' = x' * u + x * u'."""
    target, _, update = tangents
    x = op.inputs[0]
    parts: list[SSAValue] = []
    if target is not None:
        factors = _again(b, op, b.full_like(x, 1), op.updates[0], hlo.MultiplyOp)
        parts.append(b.multiply(target, factors))
    if update is not None:
        parts.append(b.multiply(x, _again(b, op, zeros(b, x), update, hlo.AddOp)))
    return [b.add(*parts) if len(parts) == 2 else parts[0] if parts else None]


def _one_by_one(b: Builder, op: Any) -> Sequence[SSAValue]:
    """A loop over the updates, in the order in which they apply."""
    shapes = [shape_of(x) for x in op.inputs]
    wide = [element_of(t) for t in op.update_computation.block.args[: len(shapes)]]
    count = dims.product(shape_of(op.updates[0]))
    inputs = [b.convert(x, e) for x, e in zip(op.inputs, wide, strict=True)]
    if count == 0 or 0 in shapes[0]:
        return inputs
    updates = [flat(b, b.convert(x, e)) for x, e in zip(op.updates, wide, strict=True)]
    places, inside = (flat(b, x) for x in targets(b, op))

    def step(before: Sequence[SSAValue], items: Sequence[SSAValue]) -> Sequence[SSAValue]:
        *new, place, hit = items
        old = [b.reshape(b.emit(hlo.DynamicSliceOp, x, place, slice_sizes=(1,)), ()) for x in before]
        made = vectorize_block(b, op.update_computation.block, [*old, *new], ())
        kept = [b.reshape(b.select(hit, n, o), (1,)) for n, o in zip(made, old, strict=True)]
        return [b.emit(hlo.DynamicUpdateSliceOp, x, k, place) for x, k in zip(before, kept, strict=True)]

    last = looping.scan(b, count, [flat(b, x) for x in inputs], [*updates, places, inside], (), step)
    return [b.reshape(x, shape) for x, shape in zip(last, shapes, strict=True)]


_ADD = Linear(_add, lambda op: (0, 2))
_SET, _EXTREME, _UNIQUE_PRODUCT, _ANY = (
    ByTangents(_replace), ByTangents(_extreme), ByTangents(_multiply), Expanded(_one_by_one),
)  # fmt: skip


@chooses(hlo.ScatterOp)
def scatter(op: Any) -> Row:
    """By what the body applies."""
    block = op.update_computation.block
    if len(op.inputs) > 1 or block.args[0].type != tensor((), element_of(op.inputs[0])):
        return _ANY
    last = block.last_op
    if isinstance(last, ReturnOp) and last.operands[0] is block.args[1]:
        return _SET
    first = block.first_op
    both = first is not None and first.next_op is last and set(first.operands) == set(block.args)
    if first is None or not both or tuple(last.operands) != tuple(first.results):
        return _ANY
    if isinstance(first, hlo.AddOp):
        return _ADD
    if isinstance(first, hlo.MaximumOp | hlo.MinimumOp):
        return _EXTREME
    return _UNIQUE_PRODUCT if isinstance(first, hlo.MultiplyOp) and op.value("unique_indices") else _ANY


# ---- sort and top_k ----


@tangents(hlo.SortOp)
def sort(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """Each tangent goes where its element goes, which sorting their places along tells."""
    axis = op.value("dimension") % max(rank_of(op.inputs[0]), 1)
    if rank_of(op.inputs[0]) == 0 or 0 in shape_of(op.inputs[0]):
        return tangents
    region = op.comparator.clone()
    for _ in range(2):
        region.block.insert_arg(tensor((), "i64"), len(region.block.args))
    places = b.iota(shape_of(op.inputs[0]), axis)
    order = b.emit_all(
        hlo.SortOp, *op.inputs, places, regions=(region,), dimension=axis, is_stable=op.value("is_stable")
    )[-1]
    return [None if t is None else gathering.take_along(b, t, order, axis) for t in tangents]


@tangents(chlo.TopKOp)
def top_k(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """The tangents of the elements that were chosen."""
    (tangent,) = tangents
    if tangent is None:
        return [None, None]
    rank = rank_of(tangent)
    shape = (*shape_of(tangent)[:-1], shape_of(op.values)[-1])
    if 0 in shape_of(tangent):
        return [zeros(b, op.values), None]
    others = tuple(range(rank - 1))
    numbers = GatherDimensions((), (rank - 1,), others, others, (rank - 1,), rank)
    sizes: list[Size] = [1] * rank
    found = b.emit(hlo.GatherOp, tangent, op.indices, dimension_numbers=numbers, slice_sizes=sizes)
    return [b.reshape(found, shape), None]


__all__ = ["flat", "read"]
