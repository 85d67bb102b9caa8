"""Tensors from nothing: filled ones, ranges, symbolic sizes as numbers."""

from __future__ import annotations

from gcomp.dims import Dim
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir.types import tensor


@imports("full", "full_like", "new_full", "fill")
def full(ctx: NodeContext) -> Results:
    """Filled with a number."""
    value = ctx.arg("fill_value") if ctx.arg("fill_value") is not None else ctx.arg("value")
    return ctx.b.broadcast(ctx.scalar(value, ctx.out_dtype()), ctx.out_shape(), ())


@imports("scalar_tensor")
def scalar_tensor(ctx: NodeContext) -> Results:
    """A number as a tensor of rank 0."""
    return ctx.scalar(ctx.arg("s"), ctx.out_dtype())


@imports(
    "zeros",
    "zeros_like",
    "new_zeros",
    "empty",
    "empty_like",
    "new_empty",
    "empty_strided",
    "new_empty_strided",
    "empty_permuted",
)
def zeros(ctx: NodeContext) -> Results:
    """Zeros; a tensor of no certain content is zeros, too."""
    return ctx.b.full(ctx.out_shape(), 0, ctx.out_dtype())


@imports("ones", "ones_like", "new_ones")
def ones(ctx: NodeContext) -> Results:
    """Ones."""
    return ctx.b.full(ctx.out_shape(), 1, ctx.out_dtype())


@imports("arange", "prims::iota")
def arange(ctx: NodeContext) -> Results:
    """start + step * i: of floats computed in double precision, as torch does."""
    b, text, shape = ctx.b, ctx.out_dtype(), ctx.out_shape()
    start, step = ctx.arg("start", 0), ctx.arg("step", 1)
    if (isinstance(start, int) and isinstance(step, int)) or isinstance(start, Dim) or isinstance(step, Dim):
        wide = "i64"
    else:
        wide = "f64"
    places = b.convert(b.iota(shape, 0, "i64"), wide)
    if step != 1:
        places = b.multiply(places, ctx.scalar(step, wide))
    if start != 0:
        places = b.add(places, ctx.scalar(start, wide))
    return b.convert(places, tensor(shape, text).element_type)
