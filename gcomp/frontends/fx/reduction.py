"""Folding dimensions: sums, means, extremes and their places, norms, cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp import dims
from gcomp.dtypes import is_float
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports, imports_table
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, identity
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of, shape_of, tensor


def _fold_axes(ctx: NodeContext, op: type[GraphOp], x: SSAValue, axes: Sequence[int]) -> SSAValue:
    return ctx.b.reduce(op, x, axes, keepdims=bool(ctx.arg("keepdim", False)))


def _fold(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        return _fold_axes(ctx, op, ctx.b.convert(ctx["self"], ctx.out_dtype()), ctx.axes())

    return run


imports_table({
    "sum": _fold(hlo.AddOp), "prod": _fold(hlo.MultiplyOp), "amax": _fold(hlo.MaximumOp), "amin": _fold(hlo.MinimumOp),
})  # fmt: skip


@imports("mean")
def mean(ctx: NodeContext) -> Results:
    """The mean over axes, of all elements by default."""
    return ctx.b.mean(ctx.b.convert(ctx["self"], ctx.out_dtype()), ctx.axes(), keepdims=bool(ctx.arg("keepdim", False)))


@imports("any", "all")
def any_all(ctx: NodeContext) -> Results:
    """Whether some, or all, numbers are not 0."""
    x = ctx["self"]
    op = hlo.OrOp if ctx.operator.startswith("aten::any") else hlo.AndOp
    found = _fold_axes(ctx, op, ctx.b.compare(x, ctx.b.full_like(x, 0), "NE"), ctx.axes())
    return ctx.b.convert(found, ctx.out_dtype())


@imports("var", "var_mean")
def variance(ctx: NodeContext) -> Results:
    """The variance over axes, with the mean; `correction` (1 by default) is taken from the count."""
    b, axes, kept = ctx.b, ctx.axes(), bool(ctx.arg("keepdim", False))
    x = b.widen(ctx["self"])
    correction = ctx.arg("correction", None)
    if correction is None:
        correction = 0 if ctx.arg("unbiased", True) is False else 1
    middle = b.mean(x, axes, keepdims=True)
    apart = b.subtract(x, middle)
    total = b.reduce(hlo.AddOp, b.multiply(apart, apart), axes, keepdims=kept)
    count = b.convert(b.dim(dims.product([shape_of(x)[a] for a in axes])), element_of(x))
    divisor = b.subtract(count, b.full_like(count, correction))
    # A correction larger than the count divides by 0, as torch does.
    divisor = b.maximum(divisor, b.full_like(divisor, 0))
    result = b.convert(b.divide(total, divisor), ctx.out_dtype())
    if ctx.operator.startswith("aten::var_mean"):
        return [result, b.convert(b.mean(x, axes, keepdims=kept), ctx.out_dtype())]
    return result


def earliest(b: Builder, text: str, direction: str) -> Callable[[Sequence[SSAValue]], list[SSAValue]]:
    """What keeps the greater (or less) of two values and its place: NaN beats all others, of equal ones the earlier."""

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        value, place, other, other_place = args
        better = b.compare(value, other, direction)
        equal = b.compare(value, other, "EQ")
        if is_float(text):
            own_nan, other_nan = b.compare(value, value, "NE"), b.compare(other, other, "NE")
            better = b.emit(hlo.OrOp, better, b.emit(hlo.AndOp, own_nan, b.emit(hlo.NotOp, other_nan)))
            equal = b.emit(hlo.OrOp, equal, b.emit(hlo.AndOp, own_nan, other_nan))
        own = b.emit(hlo.OrOp, better, b.emit(hlo.AndOp, equal, b.compare(place, other_place, "LT")))
        return [b.select(own, value, other), b.select(own, place, other_place)]

    return body


def _place(ctx: NodeContext, x: SSAValue, axis: int, direction: str) -> tuple[SSAValue, SSAValue]:
    """The greatest (or least) along an axis and its first index; NaN beats all others."""
    b, text = ctx.b, dtype_text(x.type)
    places = b.iota(shape_of(x), axis, "i64")
    worst = b.full((), identity(hlo.MaximumOp if direction == "GT" else hlo.MinimumOp, text), text)
    types = [tensor((), text), tensor((), "i64")]
    region = b.region([*types, *types], earliest(b, text, direction))
    start = b.full((), 2**63 - 1, "i64")
    value, place = b.emit_all(hlo.ReduceOp, x, places, worst, start, regions=[region], dimensions=[axis])
    return value, place


def _arg(direction: str) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        b, x = ctx.b, ctx["self"]
        if ctx.arg("dim") is None:
            x, axis = b.reshape(x, (dims.product(ctx.shape()),)), 0
        elif not ctx.rank():
            x, axis = b.reshape(x, (1,)), 0
        else:
            axis = ctx.axis()
        return b.reshape(_place(ctx, x, axis, direction)[1], ctx.out_shape())

    return run


def _extreme(direction: str) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        b, x = ctx.b, ctx["self"]
        if "dim" not in ctx.operator:
            op = hlo.MaximumOp if direction == "GT" else hlo.MinimumOp
            return b.reduce(op, x, range(ctx.rank()))
        if not ctx.rank():
            return [x, b.full((), 0, "i64")]
        value, place = _place(ctx, x, ctx.axis(), direction)
        return [b.reshape(value, ctx.out_shape(0)), b.reshape(place, ctx.out_shape(1))]

    return run


imports_table({"argmax": _arg("GT"), "argmin": _arg("LT"), "max": _extreme("GT"), "min": _extreme("LT")})


@imports("hash_tensor")
def hash_tensor(ctx: NodeContext) -> Results:
    """The exclusive or of all elements' bits: of floats in 64 bits, of integers in 64 bits with their sign."""
    b = ctx.b
    x = b.convert(ctx["self"], "f64" if is_float(ctx.dtype()) else "i64")
    bits = b.emit(hlo.BitcastConvertOp, x, types=(tensor(shape_of(x), "ui64"),))
    return b.reduce(hlo.XorOp, bits, ctx.axes(), keepdims=bool(ctx.arg("keepdim", False)))
