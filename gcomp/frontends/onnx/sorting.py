"""Sorting."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dtypes import is_float
from gcomp.frontends.onnx.context import NodeContext
from gcomp.frontends.onnx.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, element_of, shape_of, tensor


@imports("TopK")
def top_k_attribute(ctx: NodeContext) -> Results:
    """TopK-1: k is an attribute."""
    return _top_k(ctx, ctx.integer("k"))


@imports("TopK", since=10)
def top_k(ctx: NodeContext) -> Results:
    """TopK-10: k is an input; from opset 11 on the smallest, too. Equal elements keep their order."""
    if ctx.rank(1) > 1 or (ctx.rank(1) and ctx.ranges.equal(ctx.shape(1)[0], 1) is False):
        ctx.invalid(f"k has shape {ctx.shape(1)}", "one number is expected")
    return _top_k(ctx, ctx.size(1, "k"))


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
    values, places = sorted_along(ctx, x, axis, descending=ctx.flag("largest", True))
    return [b.slice_axis(v, axis, 0, k) for v in (values, places)]


def sorted_along(ctx: NodeContext, x: SSAValue, axis: int, *, descending: bool) -> tuple[SSAValue, SSAValue]:
    """`x` sorted stably along an axis, and where each element came from; NaN counts as the greatest."""
    b, floating = ctx.b, is_float(dtype_text(x.type))
    scalar, place = tensor((), element_of(x)), tensor((), "i64")

    def before(args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        left, right = args[:2]
        less = b.compare(left, right, "GT" if descending else "LT")
        if not floating:
            return [less]
        # NaN first when descending, last when ascending.
        first, second = (left, right) if descending else (right, left)
        nan, other = b.compare(first, first, "NE"), b.compare(second, second, "EQ")
        return [b.emit(hlo.OrOp, less, b.emit(hlo.AndOp, nan, other))]

    region = b.region([scalar, scalar, place, place], before)
    places = b.iota(shape_of(x), axis)
    values, order = b.emit_all(hlo.SortOp, x, places, regions=(region,), dimension=axis, is_stable=True)
    return values, order
