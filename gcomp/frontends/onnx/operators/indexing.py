"""Gathering and scattering by indices; negative indices count from the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Region, SSAValue

from gcomp.dims import Dim, Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import GatherDimensions, ScatterDimensions
from gcomp.ir.builder import Builder
from gcomp.ir.gathering import take, take_along, wrap_indices
from gcomp.ir.types import dtype_text, element_of, shape_of, tensor


def nonnegative(ctx: NodeContext, index: int) -> bool:
    """Whether an operand's known values are all at least 0."""
    known = ctx.value(index).known
    return known is not None and known.dtype != object and bool((known >= 0).all())


def check_indices(ctx: NodeContext, index: int, sizes: Sequence[Size]) -> None:
    """Raises InvalidModelError for constant indices out of bounds: of dims of `sizes`, or all of one.

    Where a size is symbolic, calls are held to it.
    Indices that depend on data are clamped when the program runs (see docs/guides/semantics.md).
    """
    known = ctx.value(index).known
    if known is None or known.dtype == object or not known.size or not sizes:
        return
    columns = known.reshape(-1, len(sizes))
    for column, size in zip(columns.T, sizes, strict=True):
        low, high = int(column.min()), int(column.max())
        if isinstance(size, int) and not -size <= low <= high < size:
            ctx.invalid(f"index {high if high >= size else low} is out of bounds", f"the dim has size {size}")
        if isinstance(size, Dim) and not ctx.at_most(least := max(high + 1, -low), size):
            ctx.require("le", least, size)


@imports("Gather")
def gather(ctx: NodeContext) -> Results:
    """Gather: whole slices along one axis."""
    b, x = ctx.b, ctx[0]
    axis = ctx.axis(ctx.integer("axis"), ctx.rank())
    size = ctx.shape()[axis]
    check_indices(ctx, 1, [size])
    known = ctx.value(1).known
    if known is not None and known.size == 1 and not isinstance(at := known.reshape(-1).tolist()[0], Dim):
        start = at if at >= 0 else size + at
        one = b.slice_axis(x, axis, start, start + 1)
        return [b.reshape(one, (*ctx.shape()[:axis], *known.shape, *ctx.shape()[axis + 1 :]))]
    indices = ctx[1] if nonnegative(ctx, 1) else wrap_indices(b, ctx[1], size)
    return [take(b, x, indices, axis)]


@imports("GatherElements")
def gather_elements(ctx: NodeContext) -> Results:
    """GatherElements: an element for each index, from the same place in the other dims."""
    axis = ctx.axis(ctx.integer("axis"), ctx.rank())
    if ctx.rank(1) != ctx.rank():
        ctx.invalid(f"indices have rank {ctx.rank(1)}", f"the data has rank {ctx.rank()}")
    check_indices(ctx, 1, [ctx.shape()[axis]])
    indices = wrap_indices(ctx.b, ctx[1], ctx.shape()[axis])
    return [take_along(ctx.b, ctx[0], indices, axis)]


@imports("GatherND")
def gather_nd(ctx: NodeContext) -> Results:
    """GatherND: slices at index vectors, after `batch_dims` dims in common."""
    b, x, batch = ctx.b, ctx[0], ctx.integer("batch_dims")
    shape, indices = ctx.shape(), ctx[1]
    depth = ctx.static(ctx.shape(1)[-1], "size of an index vector") if ctx.rank(1) else 0
    if not ctx.rank(1) or batch >= min(ctx.rank(), ctx.rank(1)) or batch + depth > ctx.rank():
        ctx.invalid(f"batch_dims is {batch} and index vectors have size {depth}", f"the data has rank {ctx.rank()}")
    if batch < 0:
        ctx.invalid(f"batch_dims is {batch}", "a number from 0 on is expected")
    check_indices(ctx, 1, shape[batch : batch + depth])
    common, indexed = tuple(range(batch)), tuple(range(batch, batch + depth))
    if not nonnegative(ctx, 1):
        indices = _wrap_vectors(b, indices, [shape[i] for i in indexed])
    count = ctx.rank(1) - 1
    dimensions = GatherDimensions(
        offset_dims=tuple(range(count, count + ctx.rank() - batch - depth)),
        collapsed_slice_dims=indexed,
        operand_batching_dims=common,
        start_indices_batching_dims=common,
        start_index_map=indexed,
        index_vector_dim=count,
    )
    sizes = [1 if i < batch + depth else s for i, s in enumerate(shape)]
    indices = ctx.restate(indices, {i: shape[i] for i in common})
    return [b.emit(hlo.GatherOp, x, indices, dimension_numbers=dimensions, slice_sizes=sizes)]


def _wrap_vectors(b: Builder, indices: SSAValue, sizes: Sequence[Size]) -> SSAValue:
    text = dtype_text(indices.type)
    if all(isinstance(s, int) for s in sizes):
        limits = b.constant(np.asarray(sizes), text)
    else:
        limits = b.concatenate([b.reshape(b.dim(s, text), (1,)) for s in sizes], 0)
    return b.select(b.compare(indices, b.constant(0, text), "LT"), b.add(indices, limits), indices)


# ---- scatter -----------------------------------------------------------------------------------------------------

_Combine = Callable[[Builder, SSAValue, SSAValue], SSAValue]
_COMBINE: dict[str, _Combine] = {
    "none": lambda b, old, new: new,
    "add": lambda b, old, new: b.add(old, new),
    "mul": lambda b, old, new: b.multiply(old, new),
    "max": lambda b, old, new: b.maximum(old, new),
    "min": lambda b, old, new: b.minimum(old, new),
}


def _combiner(ctx: NodeContext, x: SSAValue) -> Region:
    reduction = ctx.string("reduction", "none")
    if reduction not in _COMBINE:
        ctx.invalid(f"reduction is {reduction!r}", f"it must be one of {', '.join(_COMBINE)}")
    scalar = tensor((), element_of(x))
    return ctx.b.region([scalar, scalar], lambda args: [_COMBINE[reduction](ctx.b, args[0], args[1])])


@imports("ScatterND")
def scatter_nd(ctx: NodeContext) -> Results:
    """ScatterND: slices at index vectors replaced, or combined by `reduction`."""
    b, x, shape = ctx.b, ctx[0], ctx.shape()
    depth = ctx.static(ctx.shape(1)[-1], "size of an index vector") if ctx.rank(1) else 0
    if not ctx.rank(1) or depth > ctx.rank():
        ctx.invalid(f"index vectors have size {depth}", f"the data has rank {ctx.rank()}")
    check_indices(ctx, 1, shape[:depth])
    indices = ctx[1] if nonnegative(ctx, 1) else _wrap_vectors(b, ctx[1], shape[:depth])
    count, window = ctx.rank(1) - 1, ctx.rank() - depth
    dimensions = ScatterDimensions(
        update_window_dims=tuple(range(count, count + window)),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
        index_vector_dim=count,
    )
    if ctx.rank(2) != count + window:
        ctx.invalid(f"updates have rank {ctx.rank(2)}", f"{count + window} is expected")
    updates = ctx.restate(ctx[2], dict(enumerate((*shape_of(indices)[:count], *shape[depth:]))))
    return [_scatter(ctx, x, indices, updates, dimensions)]


def _scatter(
    ctx: NodeContext, x: SSAValue, indices: SSAValue, updates: SSAValue, dimensions: ScatterDimensions
) -> SSAValue:
    region = _combiner(ctx, x)
    return ctx.b.emit(hlo.ScatterOp, x, indices, updates, regions=(region,), scatter_dimension_numbers=dimensions)


@imports("ScatterElements", "Scatter")
def scatter_elements(ctx: NodeContext) -> Results:
    """ScatterElements: an element for each index replaced, or combined by `reduction`."""
    b, x, shape = ctx.b, ctx[0], ctx.shape()
    rank = ctx.rank()
    axis = ctx.axis(ctx.integer("axis"), rank)
    if ctx.rank(1) != rank or ctx.rank(2) != rank:
        ctx.invalid(f"indices and updates have rank {ctx.rank(1)} and {ctx.rank(2)}", f"the data has rank {rank}")
    check_indices(ctx, 1, [shape[axis]])
    indices = ctx[1] if nonnegative(ctx, 1) else wrap_indices(b, ctx[1], shape[axis])
    text, spread = dtype_text(indices.type), shape_of(indices)
    columns = [indices if i == axis else b.iota(spread, i, text) for i in range(rank)]
    vectors = b.concatenate([b.reshape(c, (*spread, 1)) for c in columns], rank)
    every = tuple(range(rank))
    updates = ctx.restate(ctx[2], dict(enumerate(spread)))
    return [_scatter(ctx, x, vectors, updates, ScatterDimensions((), every, (), (), every, rank))]


@imports("TensorScatter")
def tensor_scatter(ctx: NodeContext) -> Results:
    """TensorScatter: each batch row's update written into the cache at its own position, as a line or a ring."""
    b, cache, update = ctx.b, ctx[0], ctx[1]
    shape, rank = ctx.shape(), ctx.rank()
    axis = ctx.axis(ctx.integer("axis", -2), rank)
    if axis == 0:
        ctx.invalid("its axis is 0", "that is the batch dim")
    mode = ctx.string("mode", "linear")
    if ctx.rank(1) != rank:
        ctx.invalid(f"the update has rank {ctx.rank(1)}", f"the cache has rank {rank}")
    update = ctx.restate(update, {i: size for i, size in enumerate(shape) if i != axis})
    spread = shape_of(update)
    if ctx.at_most(shape[axis] + 1, spread[axis]):
        ctx.invalid(f"the update has length {spread[axis]}", f"the cache has length {shape[axis]}")
    position = b.iota(spread, axis)
    if ctx.has(2):
        position = b.add(position, b.broadcast(b.convert(ctx.vector(2, shape[0]), "i64"), spread, (0,)))
    if mode == "circular":
        position = b.binary(hlo.RemainderOp, position, b.dim(shape[axis]))
    columns = [position if i == axis else b.iota(spread, i) for i in range(rank)]
    vectors = b.concatenate([b.reshape(c, (*spread, 1)) for c in columns], rank)
    every = tuple(range(rank))
    return [_scatter(ctx, cache, vectors, update, ScatterDimensions((), every, (), (), every, rank))]
