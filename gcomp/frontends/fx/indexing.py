"""Indexing by tensors: advanced indexing and its assignment, gather and scatter along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Region, SSAValue

from gcomp import dims
from gcomp.dims import Size
from gcomp.dtypes import is_float
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.data_dependent import never_empty, positions
from gcomp.frontends.fx.elementwise import divide_and_floor
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions, ScatterDimensions
from gcomp.ir.builder import Builder, identity
from gcomp.ir.gathering import take, take_along, wrap_indices
from gcomp.ir.looping import running
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of, tensor


def _count(b: Builder, index: SSAValue, size: Size) -> SSAValue:
    """Indices in 64 bits, negative ones counted from the end."""
    return wrap_indices(b, b.convert(index, "i64"), size)


# ---- advanced indexing ----------------------------------------------------------------------------------------------


class _Indexed:
    """`x[indices]`: the indexed dimensions, the index vectors, and where they stand in the result."""

    def __init__(
        self, ctx: NodeContext, x: SSAValue, indices: Sequence[SSAValue | None], count: Size | None = None
    ) -> None:
        """`count` is how many elements a mask among the indices selects, if torch has a symbol for it."""
        b, shape = ctx.b, shape_of(x)
        self.may_miss = any(index is not None and not _is_mask(index) for index in indices)
        """Whether an index may be out of range; where a mask holds is not."""
        indices = [part for index in indices for part in _without_mask(ctx, index, count)]
        self.dims = [i for i, index in enumerate(indices) if index is not None]
        given = [cast(SSAValue, indices[i]) for i in self.dims]
        batch = b.broadcast_shape(*(shape_of(index) for index in given))
        vectors = [_count(b, b.broadcast_to(v, batch), shape[d]) for d, v in zip(self.dims, given, strict=True)]
        self.vectors = b.concatenate([b.reshape(v, (*batch, 1)) for v in vectors], len(batch))
        together = self.dims == list(range(self.dims[0], self.dims[-1] + 1))
        first = self.dims[0] if together else 0
        rank = len(batch) + len(shape) - len(self.dims)
        self.batch_rank = len(batch)
        self.windows = tuple(i for i in range(rank) if not first <= i < first + len(batch))
        self.sizes = [1 if i in self.dims else s for i, s in enumerate(shape)]


def _is_mask(index: SSAValue | None) -> bool:
    return index is not None and dtype_text(index.type) in ("i1", "ui8")


def _without_mask(ctx: NodeContext, index: SSAValue | None, count: Size | None) -> list[SSAValue | None]:
    """An index, or for a mask those of the dimensions that it stands for: where it holds."""
    if index is None or not _is_mask(index):
        return [index]
    b = ctx.b
    mask = b.convert(index, "i1") if dtype_text(index.type) != "i1" else index
    if count is None:
        count = ctx.importer.numbers.fresh(dims.product(shape_of(mask)))
    found = positions(ctx, mask, count)
    return [b.reshape(b.slice_axis(found, 0, i, i + 1), (count,)) for i in range(rank_of(mask))]


def _selected_count(ctx: NodeContext, indices: Sequence[SSAValue | None]) -> Size | None:
    """How many elements masks select, as torch says it; None where there are other indices, too, or no mask."""
    there = [i for i, index in enumerate(indices) if index is not None]
    if not there or not all(_is_mask(indices[i]) for i in there):
        return None
    together = there == list(range(there[0], there[-1] + 1))
    return ctx.out_shape()[there[0] if together else 0]


def _indices(ctx: NodeContext) -> list[SSAValue | None]:
    return list(ctx.arg("indices"))


@imports("index", "_unsafe_index")
def index(ctx: NodeContext) -> Results:
    """NumPy's advanced indexing by tensors of integers, and by masks."""
    x = ctx["self"]
    if 0 in ctx.out_shape():
        return ctx.b.full(ctx.out_shape(), 0, ctx.out_dtype())
    at = _Indexed(ctx, x, _indices(ctx), _selected_count(ctx, _indices(ctx)))
    dimensions = GatherDimensions(at.windows, tuple(at.dims), (), (), tuple(at.dims), at.batch_rank)
    x = never_empty(ctx, x, at.dims)
    found = ctx.b.emit(
        hlo.GatherOp, x, at.vectors, dimension_numbers=dimensions, slice_sizes=at.sizes, indices_are_sorted=False
    )
    return ctx.raising(found) if at.may_miss and "_unsafe" not in ctx.operator else found


@imports("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(ctx: NodeContext) -> Results:
    """A tensor with the elements at indices replaced, or added to. A mask of one value is a selection."""
    b, x, values = ctx.b, ctx["self"], ctx["values"]
    indices, adds = _indices(ctx), bool(ctx.arg("accumulate", False))
    mask = indices[0] if indices else None
    if mask is not None and dtype_text(mask.type) == "i1" and all(i is None for i in indices[1:]):
        values = _mask(ctx, x, mask, values)
        changed = b.add(x, values) if adds else values
        return b.select(b.broadcast(mask, shape_of(x), range(rank_of(mask))), changed, x)
    at = _Indexed(ctx, x, indices)
    batch = iter(shape_of(at.vectors)[:-1])
    kept = iter([s for i, s in enumerate(shape_of(x)) if i not in at.dims])
    rank = at.batch_rank + len(at.windows)
    updates = b.broadcast_to(values, [next(kept) if i in at.windows else next(batch) for i in range(rank)])
    dimensions = ScatterDimensions(at.windows, tuple(at.dims), (), (), tuple(at.dims), at.batch_rank)
    return _scatter(ctx, x, at.vectors, updates, dimensions, hlo.AddOp if adds else None)


def _mask(ctx: NodeContext, x: SSAValue, mask: SSAValue, values: SSAValue) -> SSAValue:
    """What comes where a mask of leading dimensions holds: one value for all places, or one after the other."""
    b, lead, rest = ctx.b, shape_of(mask), shape_of(x)[rank_of(mask) :]
    if rank_of(values) <= len(rest) or shape_of(values)[0] == 1:
        kept = shape_of(values)[-len(rest) :] if rest else ()
        return b.broadcast_to(b.reshape(values, kept), shape_of(x))
    flat = b.convert(b.reshape(mask, (dims.product(lead),)), "i64")
    place = b.subtract(running(b, flat, 0, b.add, b.constant(0, "i64")), b.constant(1, "i64"))
    place = b.maximum(place, b.constant(0, "i64"))
    found = take(b, never_empty(ctx, b.broadcast_to(values, (shape_of(values)[0], *rest)), [0]), place, 0)
    return b.reshape(found, shape_of(x))


def _scatter(
    ctx: NodeContext, x: SSAValue, vectors: SSAValue, updates: SSAValue, dimensions: ScatterDimensions,
    op: type[GraphOp] | None,
) -> SSAValue:  # fmt: skip
    """A scatter that combines with an op, or replaces: of several updates at one place the last counts."""
    found = ctx.b.emit(
        hlo.ScatterOp, x, vectors, updates, regions=[_combiner(ctx.b, x, op)], scatter_dimension_numbers=dimensions,
        indices_are_sorted=False, unique_indices=False,
    )  # fmt: skip
    return found if "_unsafe" in ctx.operator else ctx.raising(found)


@imports("max_unpool2d", "max_unpool3d")
def max_unpool(ctx: NodeContext) -> Results:
    """Elements put where the places of a pooling say, in planes of zeros; places do not count from the end."""
    b, x, out = ctx.b, ctx["self"], ctx.out_shape()
    spatial = int(ctx.operator.partition("unpool")[2][0])
    if 0 in (*out, *shape_of(x)):
        return b.full(out, 0, ctx.out_dtype())
    planes, taken = dims.product(shape_of(x)[:-spatial]), dims.product(shape_of(x)[-spatial:])
    places = b.reshape(b.convert(ctx["indices"], "i64"), (planes, taken, 1))
    vectors = b.concatenate([b.iota((planes, taken, 1), 0), places], 2)
    zeros = b.full((planes, dims.product(out[-spatial:])), 0, ctx.out_dtype())
    dimensions = ScatterDimensions((), (0, 1), (), (), (0, 1), 2)
    return b.reshape(_scatter(ctx, zeros, vectors, b.reshape(x, (planes, taken)), dimensions, None), out)


def _combiner(b: Builder, x: SSAValue, op: type[GraphOp] | None) -> Region:
    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        return [args[1] if op is None else b.emit(op, *args)]

    scalar = tensor((), element_of(x))
    return b.region([scalar, scalar], body)


# ---- along an axis --------------------------------------------------------------------------------------------------


@imports("gather")
def gather(ctx: NodeContext) -> Results:
    """The elements at indices along an axis; the other dimensions go along with the indices."""
    b, x, places = ctx.b, ctx["self"], ctx["index"]
    if not ctx.rank():
        return b.reshape(b.broadcast(x, shape_of(places), ()), ctx.out_shape())
    if 0 in ctx.out_shape():
        return b.full(ctx.out_shape(), 0, ctx.out_dtype())
    if not rank_of(places):
        places = b.reshape(places, (1,))
    return b.reshape(ctx.raising(take_along(b, x, b.convert(places, "i64"), ctx.axis())), ctx.out_shape())


def _along(ctx: NodeContext, x: SSAValue, places: SSAValue, updates: SSAValue, op: type[GraphOp] | None) -> SSAValue:
    """Updates at indices along an axis of a tensor, combined with an op."""
    b = ctx.b
    if 0 in shape_of(places):
        return x
    if not ctx.rank() or not rank_of(places):
        x, places, updates = (b.reshape(v, shape_of(v) or (1,)) for v in (x, places, updates))
    axis, shape = ctx.axis(), shape_of(places)
    rank = len(shape)
    updates = b.slice(updates, [0] * rank, shape)
    columns = [b.convert(places, "i64") if i == axis else b.iota(shape, i) for i in range(rank)]
    vectors = b.concatenate([b.reshape(c, (*shape, 1)) for c in columns], rank)
    every = tuple(range(rank))
    found = _scatter(ctx, x, vectors, updates, ScatterDimensions((), every, (), (), every, rank), op)
    return b.reshape(found, ctx.out_shape())


_REDUCTIONS: dict[str, type[GraphOp]] = {
    "add": hlo.AddOp, "sum": hlo.AddOp, "multiply": hlo.MultiplyOp, "prod": hlo.MultiplyOp,
    "amax": hlo.MaximumOp, "amin": hlo.MinimumOp,
}  # fmt: skip


@imports("scatter")
def scatter(ctx: NodeContext) -> Results:
    """Elements at indices along an axis replaced, by others or one number, or combined with them."""
    b, places = ctx.b, ctx["index"]
    if ctx.has("src"):
        updates = ctx["src"]
    else:
        updates = b.broadcast(ctx.scalar(ctx.arg("value"), ctx.dtype()), shape_of(places), ())
    how = ctx.arg("reduce")
    return _along(ctx, ctx["self"], places, updates, None if how is None else _REDUCTIONS[how])


@imports("scatter_add")
def scatter_add(ctx: NodeContext) -> Results:
    """Elements at indices along an axis added to."""
    return _along(ctx, ctx["self"], ctx["index"], ctx["src"], hlo.AddOp)


@imports("scatter_reduce")
def scatter_reduce(ctx: NodeContext) -> Results:
    """Elements at indices along an axis combined; a mean is the sum by the count. Without `include_self` what was
    there does not count where something comes."""
    b, x, places, updates, how = ctx.b, ctx["self"], ctx["index"], ctx["src"], ctx.arg("reduce")
    if how == "mean":
        ones = b.full(shape_of(updates), 1, element_of(updates))
        start = b.full_like(x, 1 if ctx.arg("include_self", True) else 0)
        count = b.maximum(_along(ctx, start, places, ones, hlo.AddOp), b.full_like(x, 1))
        base = x if ctx.arg("include_self", True) else _fill_places(ctx, x, places, 0)
        total = _along(ctx, base, places, updates, hlo.AddOp)
        return b.divide(total, count) if is_float(dtype_text(x.type)) else divide_and_floor(ctx, total, count)
    op = _REDUCTIONS[how]
    if not ctx.arg("include_self", True):
        x = _fill_places(ctx, x, places, identity(op, dtype_text(x.type)))
    return _along(ctx, x, places, updates, op)


def _fill_places(ctx: NodeContext, x: SSAValue, places: SSAValue, value: object) -> SSAValue:
    """A tensor with a number where something comes."""
    return _along(ctx, x, places, ctx.b.full(shape_of(places), value, element_of(x)), None)


@imports("index_add")
def index_add(ctx: NodeContext) -> Results:
    """Slices along an axis added to at indices, `alpha` times."""
    b, x, source = ctx.b, ctx["self"], ctx["source"]
    alpha = ctx.arg("alpha", 1)
    if alpha != 1:
        source = b.multiply(source, ctx.scalar(alpha, dtype_text(source.type)))
    return _slices(ctx, x, source, hlo.AddOp)


@imports("index_copy")
def index_copy(ctx: NodeContext) -> Results:
    """Slices along an axis replaced at indices."""
    return _slices(ctx, ctx["self"], ctx["source"], None)


def _slices(ctx: NodeContext, x: SSAValue, source: SSAValue, op: type[GraphOp] | None) -> SSAValue:
    b, places = ctx.b, ctx["index"]
    if not ctx.rank():
        x, source = b.reshape(x, (1,)), b.reshape(source, (1,))
    if not rank_of(places):
        places = b.reshape(places, (1,))
    axis, rank = ctx.axis(), rank_of(x)
    vectors = b.reshape(b.convert(places, "i64"), (*shape_of(places), 1))
    windows = tuple(i for i in range(rank) if i != axis)
    found = _scatter(ctx, x, vectors, source, ScatterDimensions(windows, (axis,), (), (), (axis,), 1), op)
    return b.reshape(found, ctx.out_shape())
