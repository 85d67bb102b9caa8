"""Elementwise operators, with torch's type promotion and broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from gcomp.dtypes import is_complex, is_float
from gcomp.frontends.fx.context import NodeContext
from gcomp.frontends.fx.registry import Results, imports, imports_table
from gcomp.frontends.fx.values import element_text
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import comparison_type
from gcomp.ir.op import GraphOp
from gcomp.ir.stopping import stop_derivative
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of

_SAME: dict[str, type[GraphOp]] = {
    "bitwise_not": hlo.NotOp,
    "ceil": hlo.CeilOp,
    "floor": hlo.FloorOp,
    "neg": hlo.NegateOp,
    "prims::neg": hlo.NegateOp,
    "round": hlo.RoundNearestEvenOp,
}
"""Of one tensor, whose element type the result has; integers stay as they are where they are whole already."""

_TO_FLOAT: dict[str, type[GraphOp]] = {
    "acos": chlo.AcosOp,
    "acosh": chlo.AcoshOp,
    "asin": chlo.AsinOp,
    "asinh": chlo.AsinhOp,
    "atan": chlo.AtanOp,
    "atanh": chlo.AtanhOp,
    "cos": hlo.CosineOp,
    "cosh": chlo.CoshOp,
    "erf": chlo.ErfOp,
    "erfc": chlo.ErfcOp,
    "erfinv": chlo.ErfInvOp,
    "exp": hlo.ExponentialOp,
    "expm1": hlo.ExponentialMinusOneOp,
    "lgamma": chlo.LgammaOp,
    "log": hlo.LogOp,
    "log1p": hlo.LogPlusOneOp,
    "rsqrt": hlo.RsqrtOp,
    "sigmoid": hlo.LogisticOp,
    "sin": hlo.SineOp,
    "sinh": chlo.SinhOp,
    "sqrt": hlo.SqrtOp,
    "tan": hlo.TanOp,
    "tanh": hlo.TanhOp,
}
"""Of one tensor; integers are converted to the default floating type first."""

_BINARY: dict[str, type[GraphOp]] = {
    "bitwise_and": hlo.AndOp,
    "bitwise_or": hlo.OrOp,
    "bitwise_xor": hlo.XorOp,
    "max.other": hlo.MaximumOp,
    "maximum": hlo.MaximumOp,
    "min.other": hlo.MinimumOp,
    "minimum": hlo.MinimumOp,
    "mul": hlo.MultiplyOp,
    "nextafter": chlo.NextAfterOp,
}
COMPARISONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
_WHOLE = frozenset(("ceil", "floor", "round", "trunc"))


def _same(name: str, op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        x = ctx["self"]
        return x if name in _WHOLE and not is_float(ctx.dtype()) else ctx.b.emit(op, x)

    return run


def _to_float(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        return ctx.b.emit(op, ctx.b.convert(ctx["self"], ctx.out_dtype()))

    return run


def _binary(op: type[GraphOp], kind: str = "DEFAULT") -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        return ctx.b.emit(op, *ctx.promote("self", "other", kind=kind))

    return run


def _comparison(direction: str) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        x, y = ctx.promote("self", "other")
        return ctx.b.emit(hlo.CompareOp, x, y, comparison_direction=direction, compare_type=comparison_type(x))

    return run


imports_table({name: _same(name, op) for name, op in _SAME.items()})
imports_table({name: _to_float(op) for name, op in _TO_FLOAT.items()})
imports_table({name: _binary(op) for name, op in _BINARY.items()})
imports_table({"atan2": _binary(hlo.Atan2Op, "INT_TO_FLOAT")})
imports_table({name: _comparison(direction) for name, direction in COMPARISONS.items()})


def _scale(ctx: NodeContext, x: SSAValue) -> SSAValue:
    """`alpha * x`; an alpha of 1 is no multiplication."""
    alpha = ctx.arg("alpha", 1)
    return x if alpha == 1 else ctx.b.multiply(x, ctx.scalar(alpha, dtype_text(x.type)))


@imports("add")
def add(ctx: NodeContext) -> Results:
    """self + alpha * other; booleans are or'ed."""
    x, y = ctx.promote("self", "other")
    return ctx.b.emit(hlo.AddOp, x, _scale(ctx, y))


@imports("sub")
def subtract(ctx: NodeContext) -> Results:
    """self - alpha * other."""
    x, y = ctx.promote("self", "other")
    return ctx.b.emit(hlo.SubtractOp, x, _scale(ctx, y))


@imports("rsub")
def reverse_subtract(ctx: NodeContext) -> Results:
    """other - alpha * self."""
    x, y = ctx.promote("self", "other")
    return ctx.b.emit(hlo.SubtractOp, y, _scale(ctx, x))


@imports("prims::fma")
def multiply_add(ctx: NodeContext) -> Results:
    """a * b + c, as torch computes it eagerly. Dynamo makes it of fused optimizers' `addcmul` and `lerp`."""
    a, b, c = ctx.promote("a", "b", "c")
    return ctx.b.emit(hlo.AddOp, ctx.b.emit(hlo.MultiplyOp, a, b), c)


@imports("div", "true_divide")
def divide(ctx: NodeContext) -> Results:
    """self / other: true division, or rounded towards zero or down."""
    mode = ctx.arg("rounding_mode")
    if mode is None:
        return ctx.b.emit(hlo.DivideOp, *ctx.promote("self", "other", kind="INT_TO_FLOAT"))
    x, y = ctx.promote("self", "other")
    return divide_and_floor(ctx, x, y) if mode == "floor" else _truncate(ctx, x, y)


@imports("floor_divide")
def floor_divide(ctx: NodeContext) -> Results:
    """The quotient rounded down."""
    return divide_and_floor(ctx, *ctx.promote("self", "other"))


def _truncate(ctx: NodeContext, x: SSAValue, y: SSAValue) -> SSAValue:
    quotient = ctx.b.emit(hlo.DivideOp, x, y)
    return _toward_zero(ctx, quotient) if is_float(dtype_text(x.type)) else quotient


def _toward_zero(ctx: NodeContext, x: SSAValue) -> SSAValue:
    b = ctx.b
    return b.select(b.compare(x, b.full_like(x, 0), "LT"), b.emit(hlo.CeilOp, x), b.emit(hlo.FloorOp, x))


def divide_and_floor(ctx: NodeContext, x: SSAValue, y: SSAValue) -> SSAValue:
    """Rounded down as torch does: of floats by the remainder, so that it is right for huge quotients, too."""
    b = ctx.b
    zero = b.full_like(x, 0)
    if not is_float(dtype_text(x.type)):
        quotient, rest = b.emit(hlo.DivideOp, x, y), b.emit(hlo.RemainderOp, x, y)
        signs = b.compare(b.compare(rest, zero, "LT"), b.compare(y, zero, "LT"), "NE")
        down = b.emit(hlo.AndOp, b.compare(rest, zero, "NE"), signs)
        return b.select(down, b.subtract(quotient, b.full_like(x, 1)), quotient)
    rest = b.emit(hlo.RemainderOp, x, y)
    quotient = b.divide(b.subtract(x, rest), y)
    apart = b.compare(b.compare(rest, zero, "LT"), b.compare(y, zero, "LT"), "NE")
    down = b.emit(hlo.AndOp, b.compare(rest, zero, "NE"), apart)
    quotient = b.select(down, b.subtract(quotient, b.full_like(x, 1)), quotient)
    floor = b.emit(hlo.FloorOp, quotient)
    nearest = b.select(
        b.compare(b.subtract(quotient, floor), b.full_like(x, 0.5), "GT"), b.add(floor, b.full_like(x, 1)), floor
    )
    exact = b.divide(x, y)
    signed_zero = b.multiply(zero, exact)
    whole = b.select(b.compare(quotient, zero, "EQ"), signed_zero, nearest)
    return b.select(b.compare(y, zero, "EQ"), exact, whole)


@imports("round.decimals")
def round_to_decimals(ctx: NodeContext) -> Results:
    """Rounded to so many decimal places; to tens, hundreds and so on where the number is negative."""
    b, x, decimals = ctx.b, ctx["self"], int(ctx.arg("decimals"))
    if not decimals:
        return b.emit(hlo.RoundNearestEvenOp, x)
    scale = b.full_like(x, 10.0 ** abs(decimals))
    there, back = (b.multiply, b.divide) if decimals > 0 else (b.divide, b.multiply)
    return back(b.emit(hlo.RoundNearestEvenOp, there(x, scale)), scale)


@imports("gcd", "prims::gcd")
def greatest_common_divisor(ctx: NodeContext) -> Results:
    """Euclid's algorithm, in rounds for all elements; never negative."""
    b, (x, y) = ctx.b, ctx.promote("self", "other")
    x, y = (v if dtype_text(v.type)[0] == "u" else b.emit(hlo.AbsOp, v) for v in (x, y))
    zero = b.full_like(x, 0)

    def condition(args: Sequence[SSAValue]) -> list[SSAValue]:
        return [b.reduce(hlo.OrOp, b.compare(args[1], zero, "NE"), range(rank_of(zero)))]

    def body(args: Sequence[SSAValue]) -> list[SSAValue]:
        first, second = args
        done = b.compare(second, zero, "EQ")
        rest = b.emit(hlo.RemainderOp, first, b.select(done, b.full_like(zero, 1), second))
        return [b.select(done, first, second), b.select(done, zero, rest)]

    regions = [b.region([x.type, y.type], condition), b.region([x.type, y.type], body)]
    return b.emit_all(hlo.WhileOp, x, y, regions=regions)[0]


@imports("trunc")
def truncate(ctx: NodeContext) -> Results:
    """Rounded towards zero."""
    return _toward_zero(ctx, ctx["self"]) if is_float(ctx.dtype()) else ctx["self"]


@imports("remainder")
def remainder(ctx: NodeContext) -> Results:
    """The remainder with the sign of the divisor."""
    b, (x, y) = ctx.b, ctx.promote("self", "other")
    rest, zero = b.emit(hlo.RemainderOp, x, y), b.full_like(x, 0)
    apart = b.compare(b.compare(rest, zero, "LT"), b.compare(y, zero, "LT"), "NE")
    return b.select(b.emit(hlo.AndOp, b.compare(rest, zero, "NE"), apart), b.add(rest, y), rest)


@imports("fmod")
def fmod(ctx: NodeContext) -> Results:
    """The remainder with the sign of the dividend."""
    return ctx.b.emit(hlo.RemainderOp, *ctx.promote("self", "other"))


@imports("pow")
def power(ctx: NodeContext) -> Results:
    """self ** exponent; small whole exponents are multiplications."""
    b = ctx.b
    exponent = ctx.arg("exponent")
    if isinstance(exponent, int | float) and exponent in (0.5, 1, 2, 3):
        x = b.convert(ctx["self"], ctx.out_dtype())
        if exponent == 0.5:
            return b.emit(hlo.SqrtOp, x)
        return x if exponent == 1 else b.multiply(x, x) if exponent == 2 else b.multiply(b.multiply(x, x), x)
    x, y = ctx.promote("self", "exponent", kind="BOOL_TO_LONG")
    return b.emit(hlo.PowerOp, b.convert(x, ctx.out_dtype()), b.convert(y, ctx.out_dtype()))


@imports("abs", "prims::abs")
def absolute(ctx: NodeContext) -> Results:
    """The absolute value; of unsigned numbers and booleans, themselves."""
    return ctx["self"] if ctx.dtype()[0] == "u" or ctx.dtype() == "i1" else ctx.b.emit(hlo.AbsOp, ctx["self"])


@imports("sign", "sgn")
def sign(ctx: NodeContext) -> Results:
    """-1, 0 or 1; 0 for NaN, unlike StableHLO; of complex numbers, of magnitude 1."""
    b, x = ctx.b, ctx["self"]
    if ctx.dtype() == "i1":
        return x
    if ctx.dtype()[0] == "u":
        return b.convert(b.compare(x, b.full_like(x, 0), "NE"), element_of(x))
    found = b.emit(hlo.SignOp, x)
    if not is_float(ctx.dtype()):
        return found
    return b.select(b.compare(x, x, "NE"), b.full_like(x, 0), found)


@imports("reciprocal")
def reciprocal(ctx: NodeContext) -> Results:
    """1 / self."""
    x = ctx.b.convert(ctx["self"], ctx.out_dtype())
    return ctx.b.divide(ctx.b.full_like(x, 1), x)


@imports("logical_not")
def logical_not(ctx: NodeContext) -> Results:
    """Whether a number is 0."""
    return ctx.b.compare(ctx["self"], ctx.b.full_like(ctx["self"], 0), "EQ")


def _logical(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        b = ctx.b
        x, y = (b.compare(v, b.full_like(v, 0), "NE") for v in (ctx["self"], ctx["other"]))
        return b.binary(op, x, y)

    return run


imports_table(
    {"logical_and": _logical(hlo.AndOp), "logical_or": _logical(hlo.OrOp), "logical_xor": _logical(hlo.XorOp)}
)


@imports("isnan")
def is_nan(ctx: NodeContext) -> Results:
    """Whether a number is NaN."""
    return ctx.b.compare(ctx["self"], ctx["self"], "NE")


@imports("isinf")
def is_infinite(ctx: NodeContext) -> Results:
    """Whether a number is infinite."""
    b, x = ctx.b, ctx["self"]
    if not is_float(ctx.dtype()):
        if is_complex(ctx.dtype()):
            ctx.unsupported("it asks of complex numbers")
        return b.full(shape_of(x), False, "i1")
    return b.compare(b.emit(hlo.AbsOp, x), b.full_like(x, math.inf), "EQ")


@imports("where")
def where(ctx: NodeContext) -> Results:
    """self where the condition holds, other elsewhere."""
    b = ctx.b
    x, y = ctx.promote("self", "other")
    return b.select(ctx["condition"], x, y)


@imports("prims::where")
def prims_where(ctx: NodeContext) -> Results:
    """a where the condition holds, b elsewhere."""
    return ctx.b.select(ctx["pred"], *ctx.promote("a", "b"))


@imports("clamp", "clamp_min", "clamp_max")
def clamp(ctx: NodeContext) -> Results:
    """Between min and max, either of which may be missing; NaN stays NaN, and max wins over min."""
    b, text = ctx.b, ctx.out_dtype()
    x = b.convert(ctx["self"], text)
    for name, op in (("min", hlo.MaximumOp), ("max", hlo.MinimumOp)):
        if ctx.has(name):
            x = b.binary(op, x, ctx.scalar(ctx.arg(name), text))
    return x


@imports("_to_copy", "to.dtype")
def to_copy(ctx: NodeContext) -> Results:
    """In another element type; complex numbers lose their imaginary part."""
    b, x, text = ctx.b, ctx["self"], ctx.out_dtype()
    if text == "i1" and ctx.dtype() != "i1":
        return b.compare(x, b.full_like(x, 0), "NE")
    return b.convert(b.emit(hlo.RealOp, x) if is_complex(ctx.dtype()) and not is_complex(text) else x, text)


@imports("prims::convert_element_type")
def convert_element_type(ctx: NodeContext) -> Results:
    """In another element type."""
    b, x, text = ctx.b, ctx["a"], element_text(ctx.arg("dtype"))
    return b.compare(x, b.full_like(x, 0), "NE") if text == "i1" and ctx.dtype("a") != "i1" else b.convert(x, text)


@imports("detach")
def detach(ctx: NodeContext) -> Results:
    """The same values, which are constants for gradients that are still to be taken."""
    return stop_derivative(ctx.b, ctx["self"])


@imports("clone", "alias", "lift_fresh_copy", "lift_fresh", "contiguous")
def same(ctx: NodeContext) -> Results:
    """The same values: layouts and aliases are not part of a program's meaning."""
    return ctx["self"]


@imports("relu")
def relu(ctx: NodeContext) -> Results:
    """The greater of self and 0; NaN stays NaN."""
    return ctx.b.emit(hlo.MaximumOp, ctx["self"], ctx.b.full_like(ctx["self"], 0))


def _shift(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    def run(ctx: NodeContext) -> Results:
        return ctx.b.emit(op, *ctx.promote("self", "other"))

    return run


@imports("__rshift__", "bitwise_right_shift")
def right_shift(ctx: NodeContext) -> Results:
    """Shifted right, with the sign of signed numbers."""
    x, y = ctx.promote("self", "other")
    unsigned = dtype_text(x.type)[0] == "u"
    return ctx.b.emit(hlo.ShiftRightLogicalOp if unsigned else hlo.ShiftRightArithmeticOp, x, y)


imports_table({"__lshift__": _shift(hlo.ShiftLeftOp), "bitwise_left_shift": _shift(hlo.ShiftLeftOp)})
