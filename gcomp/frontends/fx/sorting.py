"""Sorting: NaN counts as greater than all numbers."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir.gathering import sort_along


def _sort(ctx: NodeContext, *, descending: bool) -> tuple[SSAValue, SSAValue]:
    """The operand sorted along its axis, and where its elements were; equal ones keep their order."""
    if is_complex(ctx.dtype()):
        ctx.unsupported("it sorts complex numbers")
    return sort_along(ctx.b, ctx["self"], ctx.axis(), descending=descending)


@imports("sort")
def sort(ctx: NodeContext) -> Results:
    """Sorted values and their places."""
    if not ctx.rank():
        return [ctx["self"], ctx.b.full((), 0, "i64")]
    return _sort(ctx, descending=bool(ctx.arg("descending", False)))


@imports("argsort")
def argsort(ctx: NodeContext) -> Results:
    """The places of the sorted values."""
    if not ctx.rank():
        return ctx.b.full((), 0, "i64")
    return _sort(ctx, descending=bool(ctx.arg("descending", False)))[1]


@imports("topk")
def top_k(ctx: NodeContext) -> Results:
    """The k greatest (or least) along an axis, in order, and their places."""
    if not ctx.rank():
        return [ctx.b.reshape(ctx["self"], ctx.out_shape()), ctx.b.full(ctx.out_shape(), 0, "i64")]
    axis = ctx.axis()
    found = _sort(ctx, descending=bool(ctx.arg("largest", True)))
    return [ctx.b.slice_axis(v, axis, 0, ctx.arg("k")) for v in found]
