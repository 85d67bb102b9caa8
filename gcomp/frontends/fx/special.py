"""Special functions that are one op, or a few: those of several pieces are definitions (`bessel`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import dtype_of, is_complex, is_float
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports, imports_table
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, rank_of, shape_of, tensor


@imports("exp2", "special_exp2")
def exp2(ctx: NodeContext) -> Results:
    """2 ** self."""
    x = ctx.b.convert(ctx["self"], ctx.out_dtype())
    return ctx.b.emit(hlo.PowerOp, ctx.b.full_like(x, 2), x)


def _log(base: float) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        b, x = ctx.b, ctx.b.convert(ctx["self"], ctx.out_dtype())
        return b.divide(b.emit(hlo.LogOp, x), b.full_like(x, math.log(base)))

    return run


imports_table({"log2": _log(2), "log10": _log(10)})


@imports("signbit")
def sign_bit(ctx: NodeContext) -> Results:
    """Whether a number is negative; of floats whether they have the sign, which -0 and NaN may have."""
    return _sign_bit(ctx.b, ctx["self"])


def _sign_bit(b: Builder, x: SSAValue) -> SSAValue:
    text = dtype_text(x.type)
    if is_float(text):
        width = 8 * np.dtype(dtype_of(text)).itemsize
        x = b.emit(hlo.BitcastConvertOp, x, types=(tensor(shape_of(x), f"i{width}"),))
    elif text == "i1" or text.startswith("ui"):
        return b.full_like(b.compare(x, x, "NE"), False)
    return b.compare(x, b.full_like(x, 0), "LT")


@imports("copysign")
def copy_sign(ctx: NodeContext) -> Results:
    """The magnitude of self with the sign of other."""
    b, (x, y) = ctx.b, ctx.promote("self", "other", kind="INT_TO_FLOAT")
    size = b.emit(hlo.AbsOp, x)
    return b.select(_sign_bit(b, y), b.emit(hlo.NegateOp, size), size)


def _ignoring_nan(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        """The greater (or less) number; where one is NaN, the other."""
        b, (x, y) = ctx.b, ctx.promote("self", "other")
        found = b.emit(op, x, y)
        if not is_float(dtype_text(x.type)):
            return found
        found = b.select(b.compare(x, x, "NE"), y, found)
        return b.select(b.compare(y, y, "NE"), x, found)

    return run


imports_table({"fmin": _ignoring_nan(hlo.MinimumOp), "fmax": _ignoring_nan(hlo.MaximumOp)})


@imports("hypot")
def hypotenuse(ctx: NodeContext) -> Results:
    """The root of the sum of squares, without overflow on the way."""
    b, (x, y) = ctx.b, ctx.promote("self", "other")
    x, y = b.emit(hlo.AbsOp, x), b.emit(hlo.AbsOp, y)
    most, least = b.maximum(x, y), b.minimum(x, y)
    zero, infinity = b.full_like(x, 0), b.full_like(x, math.inf)
    ratio = b.select(b.compare(most, zero, "EQ"), zero, b.divide(least, most))
    found = b.multiply(most, b.emit(hlo.SqrtOp, b.add(b.multiply(ratio, ratio), b.full_like(x, 1))))
    infinite = b.emit(hlo.OrOp, b.compare(x, infinity, "EQ"), b.compare(y, infinity, "EQ"))
    return b.select(infinite, infinity, found)


@imports("frexp")
def fraction_and_exponent(ctx: NodeContext) -> Results:
    """A fraction from 0.5 to 1 and a power of 2 of which a number is the product; of 0, infinities and NaN itself."""
    b, x = ctx.b, ctx["self"]
    width = 8 * np.dtype(dtype_of(ctx.dtype())).itemsize
    digits = {"f32": 24, "f64": 53, "f16": 11, "bf16": 8}[ctx.dtype()]
    bias = (1 << (width - digits - 1)) - 1
    bits = b.emit(hlo.BitcastConvertOp, x, types=(tensor(ctx.shape(), f"i{width}"),))

    def number(value: int) -> SSAValue:
        return b.full_like(bits, value)

    # In integers all the way: targets may take subnormal numbers for 0.
    size = b.emit(hlo.AndOp, bits, number((1 << (width - 1)) - 1))
    field = b.emit(hlo.ShiftRightLogicalOp, size, number(digits - 1))
    subnormal = b.compare(field, number(0), "EQ")
    shift = b.subtract(b.emit(hlo.CountLeadingZerosOp, size), number(width - digits))
    shift = b.select(subnormal, shift, number(0))
    digits_of = b.emit(hlo.AndOp, b.emit(hlo.ShiftLeftOp, size, shift), number((1 << (digits - 1)) - 1))
    sign = b.emit(hlo.AndOp, bits, number(-(1 << (width - 1))))
    half = b.emit(hlo.OrOp, sign, number((bias - 1) << (digits - 1)))
    fraction = b.emit(hlo.BitcastConvertOp, b.emit(hlo.OrOp, half, digits_of), types=(x.type,))
    exponent = b.subtract(b.select(subnormal, number(1), field), b.add(shift, number(bias - 1)))
    whole = b.compare(field, number((1 << (width - digits)) - 1), "EQ")
    special = b.emit(hlo.OrOp, whole, b.compare(size, number(0), "EQ"))
    return [b.select(special, x, fraction), b.convert(b.select(special, number(0), exponent), "i32")]


@imports("digamma")
def digamma(ctx: NodeContext) -> Results:
    """The logarithmic derivative of gamma; at 0 an infinity with the sign that comes from the other side."""
    b, x = ctx.b, ctx.b.convert(ctx["self"], ctx.out_dtype())
    infinity = b.full_like(x, math.inf)
    pole = b.select(_sign_bit(b, x), infinity, b.emit(hlo.NegateOp, infinity))
    return b.select(b.compare(x, b.full_like(x, 0), "EQ"), pole, b.emit(chlo.DigammaOp, x))


@imports("special_zeta")
def zeta(ctx: NodeContext) -> Results:
    """Hurwitz' zeta function: the sum of (q + k) ** -x over all k from 0 on; the terms of a negative q one by one."""
    b, (x, q) = ctx.b, ctx.promote("self", "other", kind="INT_TO_FLOAT")
    zero, one, infinity = b.full_like(x, 0), b.full_like(x, 1), b.full_like(x, math.inf)
    whole = b.compare(q, b.emit(hlo.FloorOp, q), "EQ")
    pole = b.emit(hlo.AndOp, whole, b.compare(q, zero, "LE"))
    negative = b.emit(hlo.AndOp, b.compare(q, zero, "LT"), b.emit(hlo.NotOp, whole))
    start, total = _shift_sum(b, x, b.select(negative, q, one), zero)
    found = b.add(total, b.emit(chlo.ZetaOp, x, b.select(negative, start, b.select(pole, one, q))))
    found = b.select(
        b.emit(hlo.AndOp, negative, b.compare(x, b.emit(hlo.FloorOp, x), "NE")), b.full_like(x, math.nan), found
    )
    found = b.select(pole, infinity, found)
    found = b.select(b.compare(x, one, "LT"), b.full_like(x, math.nan), found)
    return b.select(b.compare(x, one, "EQ"), infinity, found)


def _shift_sum(b: Builder, x: SSAValue, q: SSAValue, zero: SSAValue) -> tuple[SSAValue, SSAValue]:
    """q moved by ones until it is positive, and the sum of q ** -x on the way."""

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        return [b.reduce(hlo.OrOp, b.compare(args[0], zero, "LT"), range(rank_of(q)))]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        at, total = args
        below = b.compare(at, zero, "LT")
        term = b.emit(hlo.PowerOp, at, b.emit(hlo.NegateOp, x))
        moved = b.add(at, b.full_like(at, 1))
        return [b.select(below, moved, at), b.select(below, b.add(total, term), total)]

    regions = [b.region([q.type, q.type], condition), b.region([q.type, q.type], body)]
    start, total = b.emit_all(hlo.WhileOp, q, zero, regions=regions)
    return start, total


@imports("isfinite")
def is_finite(ctx: NodeContext) -> Results:
    """Whether a number is neither infinite nor NaN."""
    b, x = ctx.b, ctx["self"]
    if is_complex(ctx.dtype()):
        return b.emit(hlo.AndOp, *(b.emit(hlo.IsFiniteOp, b.emit(part, x)) for part in (hlo.RealOp, hlo.ImagOp)))
    return b.emit(hlo.IsFiniteOp, x) if is_float(ctx.dtype()) else b.full(ctx.shape(), True, "i1")
