"""Elementwise primitives: most are one op on operands of equal shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex, is_float, is_integer
from gcomp.frontends.jaxpr.avals import trailing
from gcomp.frontends.jaxpr.context import EqnContext
from gcomp.frontends.jaxpr.registry import Results, imports, imports_table
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder, comparison_type, identity
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, element_of

_OPS: dict[str, type[GraphOp]] = {
    "abs": hlo.AbsOp,
    "acos": chlo.AcosOp,
    "acosh": chlo.AcoshOp,
    "add": hlo.AddOp,
    "add_any": hlo.AddOp,
    "and": hlo.AndOp,
    "asin": chlo.AsinOp,
    "asinh": chlo.AsinhOp,
    "atan": chlo.AtanOp,
    "atan2": hlo.Atan2Op,
    "atanh": chlo.AtanhOp,
    "bessel_i1e": chlo.BesselI1eOp,
    "cbrt": hlo.CbrtOp,
    "ceil": hlo.CeilOp,
    "clz": hlo.CountLeadingZerosOp,
    "cos": hlo.CosineOp,
    "cosh": chlo.CoshOp,
    "digamma": chlo.DigammaOp,
    "div": hlo.DivideOp,
    "erf": chlo.ErfOp,
    "erf_inv": chlo.ErfInvOp,
    "erfc": chlo.ErfcOp,
    "exp": hlo.ExponentialOp,
    "expm1": hlo.ExponentialMinusOneOp,
    "floor": hlo.FloorOp,
    "lgamma": chlo.LgammaOp,
    "log": hlo.LogOp,
    "log1p": hlo.LogPlusOneOp,
    "logistic": hlo.LogisticOp,
    "mul": hlo.MultiplyOp,
    "mulhi": chlo.MulhiOp,
    "neg": hlo.NegateOp,
    "nextafter": chlo.NextAfterOp,
    "not": hlo.NotOp,
    "or": hlo.OrOp,
    "polygamma": chlo.PolygammaOp,
    "population_count": hlo.PopcntOp,
    "rem": hlo.RemainderOp,
    "rsqrt": hlo.RsqrtOp,
    "shift_left": hlo.ShiftLeftOp,
    "shift_right_arithmetic": hlo.ShiftRightArithmeticOp,
    "shift_right_logical": hlo.ShiftRightLogicalOp,
    "sin": hlo.SineOp,
    "sinh": chlo.SinhOp,
    "sqrt": hlo.SqrtOp,
    "sub": hlo.SubtractOp,
    "tan": hlo.TanOp,
    "tanh": hlo.TanhOp,
    "xor": hlo.XorOp,
    "zeta": chlo.ZetaOp,
}
"""Primitives that are one op, which infers its type."""

_COMPARISONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
_TOTAL = {"eq_to": "EQ", "lt_to": "LT", "le_to": "LE"}
"""Comparisons in the total order: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""


def _one_op(op: type[GraphOp]) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        return ctx.b.emit(op, *_alike(ctx))

    return run


def _alike(ctx: EqnContext) -> list[SSAValue]:
    """The operands in the result's shape: scalars, and dimensions of size 1, may stand beside others."""
    shape = ctx.out_shape()
    return [ctx.b.broadcast_to(x, shape) for x in ctx.operands]


imports_table({name: _one_op(op) for name, op in _OPS.items()})


def _extremum(op: type[GraphOp]) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        return combine(ctx.b, op, *_alike(ctx))

    return run


imports_table({"max": _extremum(hlo.MaximumOp), "min": _extremum(hlo.MinimumOp)})


def combine(b: Builder, op: type[GraphOp], x: SSAValue, y: SSAValue) -> SSAValue:
    """A binary op. The greater of complex numbers is that of the greater real part, then of the greater imaginary one;
    XLA compares only the first."""
    if not is_complex(dtype_text(x.type)) or op not in (hlo.MaximumOp, hlo.MinimumOp):
        return b.emit(op, x, y)
    direction = "GT" if op is hlo.MaximumOp else "LT"
    real_x, real_y, imag_x, imag_y = [b.emit(part, v) for part in (hlo.RealOp, hlo.ImagOp) for v in (x, y)]
    same, real_better = b.compare(real_x, real_y, "EQ"), b.compare(real_x, real_y, direction)
    return b.select(b.select(same, b.compare(imag_x, imag_y, direction), real_better), x, y)


def unit(op: type[GraphOp], text: str) -> Any:
    """What a fold by a binary op starts from, as JAX has it: of complex numbers, an infinity without imaginary part."""
    if is_complex(text) and op in (hlo.MaximumOp, hlo.MinimumOp):
        return -np.inf if op is hlo.MaximumOp else np.inf
    return identity(op, text)


def _comparison(direction: str, kind: str | None = None) -> Callable[[EqnContext], Results]:
    def run(ctx: EqnContext) -> Results:
        if trailing(ctx.aval()):
            return _keys_compared(ctx, direction)
        x, y = _alike(ctx)
        own = kind if kind is not None and is_float(ctx.dtype()) else comparison_type(x)
        return ctx.b.emit(hlo.CompareOp, x, y, comparison_direction=direction, compare_type=own)

    return run


def _keys_compared(ctx: EqnContext, direction: str) -> Results:
    """Keys are equal where all of the integers that hold them are."""
    b, whole = ctx.b, len(ctx.out_shape())
    found = b.compare(ctx[0], ctx[1], direction)
    return b.reduce(hlo.AndOp if direction == "EQ" else hlo.OrOp, found, range(whole, ctx.rank()))


imports_table({name: _comparison(direction) for name, direction in _COMPARISONS.items()})
imports_table({name: _comparison(direction, "TOTALORDER") for name, direction in _TOTAL.items()})


@imports("sign")
def sign(ctx: EqnContext) -> Results:
    """The sign; of unsigned integers, whether they are not 0."""
    x = ctx[0]
    if not ctx.dtype().startswith("ui"):
        return ctx.b.emit(hlo.SignOp, x)
    return ctx.b.convert(ctx.b.compare(x, ctx.b.full_like(x, 0), "NE"), element_of(x))


@imports("square")
def square(ctx: EqnContext) -> Results:
    """x * x."""
    return ctx.b.multiply(ctx[0], ctx[0])


@imports("exp2")
def exp2(ctx: EqnContext) -> Results:
    """2 ** x, as JAX has it: exp(log(2) * x)."""
    return ctx.b.emit(hlo.ExponentialOp, ctx.b.multiply(ctx[0], ctx.b.full_like(ctx[0], np.log(2.0))))


@imports("pow")
def power(ctx: EqnContext) -> Results:
    """x ** y; an integer y is converted to x's type."""
    x, y = _alike(ctx)
    if not is_integer(ctx.dtype()) and is_integer(ctx.dtype(1)):
        y = ctx.b.convert(y, element_of(x))
    return ctx.b.emit(hlo.PowerOp, x, y)


@imports("integer_pow")
def integer_power(ctx: EqnContext) -> Results:
    """x ** y by squaring, 1 / x ** -y for a negative y."""
    b, x, exponent = ctx.b, ctx[0], abs(ctx.params["y"])
    found: SSAValue | None = None
    while exponent:
        if exponent & 1:
            found = x if found is None else b.multiply(found, x)
        exponent >>= 1
        if exponent:
            x = b.multiply(x, x)
    one = b.full_like(x, 1)
    if found is None:
        return one
    return b.divide(one, found) if ctx.params["y"] < 0 else found


@imports("round")
def rounded(ctx: EqnContext) -> Results:
    """Round half away from zero, or to even."""
    to_even = ctx.params["rounding_method"] != 0
    return ctx.b.emit(hlo.RoundNearestEvenOp if to_even else hlo.RoundNearestAfzOp, ctx[0])


@imports("is_finite")
def is_finite(ctx: EqnContext) -> Results:
    """Neither infinite nor NaN."""
    return ctx.b.emit(hlo.IsFiniteOp, ctx[0])


@imports("select_n")
def select_n(ctx: EqnContext) -> Results:
    """The case that an integer or boolean names; for integers by halves, as JAX has it."""
    which, cases = ctx[0], ctx.operands[1:]
    if len(cases) == 1:
        return cases[0]
    if ctx.rank():
        # A key is chosen as a whole.
        which = ctx.b.broadcast(which, ctx.out_shape(), range(ctx.rank()))
    return _select(ctx, which, cases, 0)


def _select(ctx: EqnContext, which: SSAValue, cases: list[SSAValue], offset: int) -> SSAValue:
    b = ctx.b
    if len(cases) == 1:
        return cases[0]
    middle = len(cases) // 2
    first = which if ctx.dtype() == "i1" else b.compare(which, b.full_like(which, offset + middle), "LT")
    low, high = _select(ctx, which, cases[:middle], offset), _select(ctx, which, cases[middle:], offset + middle)
    # A boolean is true for the second case.
    return b.select(first, high, low) if ctx.dtype() == "i1" else b.select(first, low, high)


@imports("clamp")
def clamp(ctx: EqnContext) -> Results:
    """min, x, max: in this order. Bounds may be scalars."""
    low, x, high = ctx.operands
    return ctx.b.emit(hlo.ClampOp, low, x, high)


@imports("complex")
def make_complex(ctx: EqnContext) -> Results:
    """Complex numbers of real and imaginary parts."""
    return ctx.b.emit(hlo.ComplexOp, *_alike(ctx))


@imports("real")
def real(ctx: EqnContext) -> Results:
    """The real part."""
    return ctx.b.emit(hlo.RealOp, ctx[0])


@imports("imag")
def imaginary(ctx: EqnContext) -> Results:
    """The imaginary part."""
    return ctx.b.emit(hlo.ImagOp, ctx[0])


@imports("conj")
def conjugate(ctx: EqnContext) -> Results:
    """The complex conjugate; real numbers become complex ones."""
    b, x = ctx.b, ctx[0]
    if not is_complex(ctx.dtype()):
        return b.emit(hlo.ComplexOp, x, b.full_like(x, 0))
    return b.emit(hlo.ComplexOp, b.emit(hlo.RealOp, x), b.emit(hlo.NegateOp, b.emit(hlo.ImagOp, x)))


@imports("reduce_precision")
def reduce_precision(ctx: EqnContext) -> Results:
    """Rounded to fewer bits of exponent and mantissa."""
    bits = {"exponent_bits": ctx.params["exponent_bits"], "mantissa_bits": ctx.params["mantissa_bits"]}
    return ctx.b.emit(hlo.ReducePrecisionOp, ctx[0], **bits)
