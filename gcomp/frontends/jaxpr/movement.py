"""Moving elements: broadcasts, reshapes, slices, pads, concatenations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.frontends.jaxpr.avals import element_text, sizes, trailing
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import rank_of, shape_of


@imports("broadcast_in_dim")
def broadcast_in_dim(ctx: EqnContext) -> Results:
    """Operand dimension i becomes dimension `broadcast_dimensions[i]`."""
    if len(ctx) > 1:
        ctx.unsupported("its sizes are data", "use a symbolic shape (jax.export.symbolic_shape)")
    extra, rank = len(trailing(ctx.aval())), len(ctx.out_shape())
    dimensions = [*ctx.params["broadcast_dimensions"], *range(rank - extra, rank)]
    return ctx.b.broadcast(ctx[0], ctx.out_shape(), dimensions)


@imports("broadcast_to")
def broadcast_to(ctx: EqnContext) -> Results:
    """NumPy's broadcasting."""
    return ctx.b.broadcast_to(ctx[0], ctx.out_shape())


@imports("reshape", "squeeze", "expand_dims")
def reshape(ctx: EqnContext) -> Results:
    """The elements in row-major order in another shape."""
    x = ctx[0]
    if (order := ctx.params.get("dimensions")) is not None and ctx.primitive == "reshape":
        x = ctx.b.transpose(x, [*order, *range(len(order), ctx.rank())])
    return ctx.b.reshape(x, ctx.out_shape())


@imports("transpose")
def transpose(ctx: EqnContext) -> Results:
    """Dimensions in another order."""
    order = list(ctx.params["permutation"])
    return ctx.b.transpose(ctx[0], [*order, *range(len(order), ctx.rank())])


@imports("rev")
def reverse(ctx: EqnContext) -> Results:
    """Elements in reverse order along dimensions."""
    return ctx.b.emit(hlo.ReverseOp, ctx[0], dimensions=list(ctx.params["dimensions"]))


@imports("slice")
def slice_(ctx: EqnContext) -> Results:
    """From starts to limits by strides."""
    extra = trailing(ctx.aval())
    starts = [*sizes(ctx.params["start_indices"]), *[0] * len(extra)]
    limits = [*sizes(ctx.params["limit_indices"]), *extra]
    strides = ctx.params["strides"] or [1] * (len(starts) - len(extra))
    return ctx.b.slice(ctx[0], starts, limits, [*strides, *[1] * len(extra)])


@imports("split")
def split(ctx: EqnContext) -> Results:
    """Consecutive parts along an axis."""
    parts: list[SSAValue] = []
    start: Size = 0
    for size in sizes(ctx.params["sizes"]):
        parts.append(ctx.b.slice_axis(ctx[0], ctx.params["axis"], start, start + size))
        start = start + size
    return parts


@imports("unstack")
def unstack(ctx: EqnContext) -> Results:
    """Every element along an axis."""
    axis, shape = ctx.params["axis"], ctx.out_shape()
    return [ctx.b.reshape(ctx.b.slice_axis(ctx[0], axis, i, i + 1), shape) for i in range(len(ctx.eqn.outvars))]


@imports("stack")
def stack(ctx: EqnContext) -> Results:
    """Arrays of one shape along a new axis."""
    axis = ctx.params["axis"]
    shape = [1 if i == axis else s for i, s in enumerate(ctx.out_shape())]
    return ctx.b.concatenate([ctx.b.reshape(x, shape) for x in ctx.operands], axis)


@imports("concatenate")
def concatenate(ctx: EqnContext) -> Results:
    """One after the other along a dimension."""
    return ctx.b.concatenate(ctx.operands, ctx.params["dimension"])


@imports("pad")
def pad(ctx: EqnContext) -> Results:
    """Low, high and interior padding; negative edges cut. Of keys, the padding is one key."""
    x, value = ctx.operands
    extra = len(trailing(ctx.aval()))
    if extra:
        ctx.unsupported("it pads keys with a key, which is no scalar", "pad the key data (jax.random.key_data)")
    low, high, interior = zip(*ctx.params["padding_config"], strict=True) if rank_of(x) else ((), (), ())
    return ctx.b.pad(x, value, sizes(low), sizes(high), [int(i) for i in interior])


@imports("iota")
def iota(ctx: EqnContext) -> Results:
    """Indices along a dimension."""
    if len(ctx):
        ctx.unsupported("its sizes are data", "use a symbolic shape (jax.export.symbolic_shape)")
    return ctx.b.iota(ctx.out_shape(), ctx.params["dimension"], element_text(ctx.params["dtype"]))


@imports("tile")
def tile(ctx: EqnContext) -> Results:
    """Repeated along each dimension."""
    b, x, counts = ctx.b, ctx[0], sizes(ctx.params["reps"])
    shape = shape_of(x)
    wide: Sequence[Size] = [s for pair in zip(counts, shape, strict=True) for s in pair]
    return b.reshape(b.broadcast(x, wide, range(1, 2 * len(shape), 2)), ctx.out_shape())


@imports("empty", "empty2")
def empty(ctx: EqnContext) -> Results:
    """An array of no certain content: zeros."""
    return ctx.b.full(ctx.out_shape(), 0, ctx.out_dtype())


@imports("dim_as_value")
def dim_as_value(ctx: EqnContext) -> Results:
    """A symbolic size as a number."""
    (size,) = sizes([ctx.params["dim"]])
    return ctx.b.dim(size, ctx.out_dtype())


@imports("dimension_size")
def dimension_size(ctx: EqnContext) -> Results:
    """The size of a dimension as a number."""
    return ctx.b.dim(ctx.shape()[int(ctx.params["dimension"])], ctx.out_dtype())
