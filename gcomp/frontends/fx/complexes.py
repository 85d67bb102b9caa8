"""Complex numbers and their parts. A conjugate is a value like others: there is no lazy one."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex, is_float
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import element_of, shape_of


@imports("view_as_real", "view_as_real_copy")
def view_as_real(ctx: NodeContext) -> Results:
    """The real and the imaginary parts, side by side in a new last dimension."""
    b, x = ctx.b, ctx["self"]
    parts = [b.emit(op, x) for op in (hlo.RealOp, hlo.ImagOp)]
    return b.concatenate([b.reshape(part, (*ctx.shape(), 1)) for part in parts], ctx.rank())


@imports("view_as_complex", "view_as_complex_copy")
def view_as_complex(ctx: NodeContext) -> Results:
    """The complex numbers whose parts stand side by side in the last dimension."""
    b, last = ctx.b, ctx.rank() - 1
    parts = [b.reshape(b.slice_axis(ctx["self"], last, i, i + 1), ctx.out_shape()) for i in range(2)]
    return b.emit(hlo.ComplexOp, *parts)


@imports("complex")
def make_complex(ctx: NodeContext) -> Results:
    """The complex numbers of these parts."""
    return ctx.b.emit(hlo.ComplexOp, *ctx.promote("real", "imag"))


@imports("real")
def real(ctx: NodeContext) -> Results:
    """The real part."""
    return ctx.b.emit(hlo.RealOp, ctx["self"]) if is_complex(ctx.dtype()) else ctx["self"]


@imports("imag")
def imaginary(ctx: NodeContext) -> Results:
    """The imaginary part."""
    return ctx.b.emit(hlo.ImagOp, ctx["self"])


@imports("_conj", "_conj_physical", "conj_physical", "_conj_copy")
def conjugate(ctx: NodeContext) -> Results:
    """The conjugate."""
    return ctx.b.emit(chlo.ConjOp, ctx["self"]) if is_complex(ctx.dtype()) else ctx["self"]


@imports("_neg_view", "_neg_view_copy")
def negative_view(ctx: NodeContext) -> Results:
    """The negative."""
    return ctx.b.emit(hlo.NegateOp, ctx["self"])


@imports("resolve_conj", "resolve_neg")
def resolve(ctx: NodeContext) -> Results:
    """Itself: nothing is lazy."""
    return ctx["self"]


@imports("angle")
def angle(ctx: NodeContext) -> Results:
    """The argument; of real numbers 0 or pi, and NaN of NaN."""
    b, x = ctx.b, ctx["self"]
    if is_complex(ctx.dtype()):
        return b.emit(hlo.Atan2Op, b.emit(hlo.ImagOp, x), b.emit(hlo.RealOp, x))
    negative = b.compare(x, b.full_like(x, 0), "LT") if ctx.dtype() != "i1" else b.full(shape_of(x), False, "i1")
    found = b.select(negative, b.full((), math.pi, ctx.out_dtype()), b.full((), 0, ctx.out_dtype()))
    return _with_nan(ctx, found, x) if is_float(ctx.dtype()) else found


def _with_nan(ctx: NodeContext, found: SSAValue, x: SSAValue) -> SSAValue:
    """Where x is NaN, x."""
    return ctx.b.select(ctx.b.compare(x, x, "NE"), ctx.b.convert(x, element_of(found)), found)
