"""Sorting."""

from __future__ import annotations

from gcomp.dims import Size
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.data_dependent_sizes import operand_size
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.ir.gathering import sort_along


@imports("TopK")
def top_k_attribute(ctx: NodeContext) -> Results:
    """TopK-1: k is an attribute."""
    return _top_k(ctx, ctx.integer("k"))


@imports("TopK", since=10)
def top_k(ctx: NodeContext) -> Results:
    """TopK-10: k is an input; from opset 11 on the smallest, too. Equal elements keep their order."""
    if ctx.rank(1) > 1 or (ctx.rank(1) and ctx.ranges.equal(ctx.shape(1)[0], 1) is False):
        ctx.invalid(f"k has shape {ctx.shape(1)}", "one number is expected")
    return _top_k(ctx, operand_size(ctx, 1, "k"))


def _top_k(ctx: NodeContext, k: Size) -> Results:
    b, x = ctx.b, ctx[0]
    axis = ctx.axis(ctx.integer("axis", -1), ctx.rank())
    size = ctx.shape()[axis]
    if ctx.at_most(k, -1) or ctx.at_most(size + 1, k):
        ctx.invalid(f"k is {k}", f"the axis has size {size}")
    if not ctx.at_most(0, k):
        ctx.require("le", 0, k)
    if not ctx.at_most(k, size):
        ctx.require("le", k, size)
    values, places = sort_along(ctx.b, x, axis, descending=ctx.flag("largest", True))
    return [b.slice_axis(v, axis, 0, k) for v in (values, places)]
