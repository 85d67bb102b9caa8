"""Sorting: NaN counts as greater than all numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex, is_float
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import dtype_text, element_of, shape_of, tensor


def _sorted(ctx: NodeContext, x: SSAValue, axis: int, *, descending: bool) -> list[SSAValue]:
    """A tensor sorted along an axis, and where its elements were; equal ones keep their order."""
    b, text = ctx.b, dtype_text(x.type)
    if is_complex(text):
        ctx.unsupported("it sorts complex numbers")
    value, place = tensor((), element_of(x)), tensor((), "i64")

    def before(args: Sequence[SSAValue]) -> list[SSAValue]:
        first, second = args[0], args[1]
        found = b.compare(first, second, "GT" if descending else "LT")
        if is_float(text):
            # NaN comes last, or first of all where the order is descending.
            one, other = (b.compare(v, v, "NE") for v in ((first, second) if descending else (second, first)))
            found = b.emit(hlo.OrOp, found, b.emit(hlo.AndOp, one, b.emit(hlo.NotOp, other)))
        return [found]

    region = b.region([value, value, place, place], before)
    places = b.iota(shape_of(x), axis, "i64")
    return list(b.emit_all(hlo.SortOp, x, places, regions=[region], dimension=axis, is_stable=True))


@imports("sort")
def sort(ctx: NodeContext) -> Results:
    """Sorted values and their places."""
    if not ctx.rank():
        return [ctx["self"], ctx.b.full((), 0, "i64")]
    return _sorted(ctx, ctx["self"], ctx.axis(), descending=bool(ctx.arg("descending", False)))


@imports("argsort")
def argsort(ctx: NodeContext) -> Results:
    """The places of the sorted values."""
    if not ctx.rank():
        return ctx.b.full((), 0, "i64")
    return _sorted(ctx, ctx["self"], ctx.axis(), descending=bool(ctx.arg("descending", False)))[1]


@imports("topk")
def top_k(ctx: NodeContext) -> Results:
    """The k greatest (or least) along an axis, in order, and their places."""
    if not ctx.rank():
        return [ctx.b.reshape(ctx["self"], ctx.out_shape()), ctx.b.full(ctx.out_shape(), 0, "i64")]
    axis = ctx.axis()
    found = _sorted(ctx, ctx["self"], axis, descending=bool(ctx.arg("largest", True)))
    return [ctx.b.slice_axis(v, axis, 0, ctx.arg("k")) for v in found]
