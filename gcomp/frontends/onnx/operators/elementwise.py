"""Elementwise arithmetic, rounding and transcendental functions, with NumPy's broadcasting from opset 7 on."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from xdsl.ir import SSAValue

from gcomp.dtypes import bit_width, is_complex, is_float, is_integer
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, add, imports
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import dtype_text, shape_of, with_element

UNARY: dict[str, type[GraphOp]] = {
    "Ceil": hlo.CeilOp,
    "Floor": hlo.FloorOp,
    "Round": hlo.RoundNearestEvenOp,
    "Sqrt": hlo.SqrtOp,
    "Exp": hlo.ExponentialOp,
    "Log": hlo.LogOp,
    "Sin": hlo.SineOp,
    "Cos": hlo.CosineOp,
    "Tan": hlo.TanOp,
    "Tanh": hlo.TanhOp,
    "Sigmoid": hlo.LogisticOp,
    "Neg": hlo.NegateOp,
    "Erf": chlo.ErfOp,
    "Acos": chlo.AcosOp,
    "Acosh": chlo.AcoshOp,
    "Asin": chlo.AsinOp,
    "Asinh": chlo.AsinhOp,
    "Atan": chlo.AtanOp,
    "Atanh": chlo.AtanhOp,
    "Cosh": chlo.CoshOp,
    "Sinh": chlo.SinhOp,
}
"""Operators that are one op on floats (Neg on signed integers too)."""

BINARY: dict[str, type[GraphOp]] = {
    "Add": hlo.AddOp,
    "Sub": hlo.SubtractOp,
    "Mul": hlo.MultiplyOp,
    "Div": hlo.DivideOp,
}
"""Operators that are one op with broadcasting; integers wrap, and their division truncates."""


def _unary(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    return lambda ctx: [ctx.b.emit(op, ctx[0])]


def binary(op: type[GraphOp]) -> Callable[[NodeContext], Results]:
    return lambda ctx: [ctx.b.binary(op, ctx[0], ctx[1])]


for _name, _op in UNARY.items():
    add(_name, _unary(_op))
for _name, _op in BINARY.items():
    add(_name, binary(_op), since=7)


@imports("Abs")
def absolute(ctx: NodeContext) -> Results:
    """Abs: unsigned integers are their own."""
    return [ctx[0] if ctx.element().startswith("ui") else ctx.b.emit(hlo.AbsOp, ctx[0])]


@imports("Sign")
def sign(ctx: NodeContext) -> Results:
    """Sign: -1, 0 or 1. NaN stays NaN."""
    if not ctx.element().startswith("ui"):
        return [ctx.b.emit(hlo.SignOp, ctx[0])]
    return [ctx.b.convert(ctx.b.compare(ctx[0], ctx.b.scalar_like(ctx[0], 0), "NE"), ctx.element())]


@imports("Reciprocal")
def reciprocal(ctx: NodeContext) -> Results:
    """Reciprocal: 1 / x."""
    return [ctx.b.divide(ctx.b.scalar_like(ctx[0], 1), ctx[0])]


@imports("Sum", "Min", "Max", "Mean", since=8)
def variadic(ctx: NodeContext) -> Results:
    """Sum, Min, Max and Mean of any number of tensors, broadcasting; Min and Max propagate NaN."""
    step = {"Min": ctx.b.minimum, "Max": ctx.b.maximum}.get(ctx.op_type, ctx.b.add)
    total = reduce(step, ctx.operands())
    if ctx.op_type == "Mean":
        total = ctx.b.divide(total, ctx.b.scalar_like(total, len(ctx.values)))
    return [total]


@imports("Mod")
def modulo(ctx: NodeContext) -> Results:
    """Mod: with the divisor's sign like Python's, or with `fmod` the dividend's like C's."""
    b, y = ctx.b, ctx[1]
    remainder = b.binary(hlo.RemainderOp, ctx[0], y)
    if ctx.flag("fmod") or ctx.element().startswith("ui"):
        return [remainder]
    zero = ctx.b.scalar_like(y, 0)
    negative = b.broadcast_to(b.compare(y, zero, "LT"), shape_of(remainder))
    differ = b.emit(hlo.XorOp, b.compare(remainder, zero, "LT"), negative)
    moved = b.emit(hlo.AndOp, differ, b.compare(remainder, zero, "NE"))
    result = b.select(moved, b.add(remainder, y), remainder)
    if not is_float(ctx.element()):
        return [result]
    # A zero has the divisor's sign.
    signed = b.select(negative, b.full_like(result, -0.0), b.full_like(result, 0.0))
    return [b.select(b.compare(result, zero, "EQ"), signed, result)]


@imports("Pow", since=7)
def power(ctx: NodeContext) -> Results:
    """Pow: the exponent may have another dtype; the result has the base's."""
    b, x = ctx.b, ctx[0]
    exponent = _known_exponent(ctx)
    if exponent is not None and is_float(ctx.element()):
        if exponent == 2:
            return [b.multiply(x, x)]
        if exponent == 3:
            return [b.multiply(b.multiply(x, x), x)]
        if exponent == 0.5:
            return [b.emit(hlo.SqrtOp, x)]
    base, y = ctx.element(), ctx.element(1)
    if base == y:
        return [b.binary(hlo.PowerOp, x, ctx[1])]
    if is_integer(base) and is_float(y):
        wide = "f64" if bit_width(base) > 16 or y == "f64" else "f32"
        return [b.convert(b.binary(hlo.PowerOp, b.convert(x, wide), b.convert(ctx[1], wide)), base)]
    return [b.binary(hlo.PowerOp, x, b.convert(ctx[1], base))]


def _known_exponent(ctx: NodeContext) -> float | None:
    value = ctx.value(1)
    if value.known is None or value.symbolic or value.known.size != 1 or len(value.shape) > len(ctx.shape()):
        return None
    return float(value.known.reshape(-1)[0])


@imports("Clip", since=11)
def clip(ctx: NodeContext) -> Results:
    """Clip-11: bounds are optional inputs; with min > max the result is max."""
    return [bound_values(ctx.b, ctx[0], _scalar_bound(ctx, 1), _scalar_bound(ctx, 2))]


def _scalar_bound(ctx: NodeContext, index: int) -> SSAValue | None:
    bound = ctx.get(index)
    if bound is not None and ctx.rank(index) > 1:
        ctx.invalid(f"input {index} has rank {ctx.rank(index)}", "a bound is a scalar")
    return None if bound is None else ctx.b.reshape(bound, ())


def bound_values(b: Builder, x: SSAValue, low: SSAValue | None, high: SSAValue | None) -> SSAValue:
    """`min(max(x, low), high)` for rank 0 bounds; a missing one does not bound."""
    if low is not None and high is not None:
        return b.emit(hlo.ClampOp, low, x, high)
    if low is not None:
        return b.maximum(x, low)
    return x if high is None else b.minimum(x, high)


@imports("BitShift")
def bit_shift(ctx: NodeContext) -> Results:
    """BitShift: by the width or more gives 0; signed integers shift their sign in from the left."""
    right = hlo.ShiftRightLogicalOp if ctx.element().startswith("ui") else hlo.ShiftRightArithmeticOp
    ops: dict[str, type[GraphOp]] = {"LEFT": hlo.ShiftLeftOp, "RIGHT": right}
    if (direction := ctx.string("direction")) not in ops:
        ctx.invalid(f"direction is {direction!r}", "it must be LEFT or RIGHT")
    return [ctx.b.binary(ops[direction], ctx[0], ctx[1])]


@imports("Cast", "CastLike")
def cast(ctx: NodeContext) -> Results:
    """Cast: floats truncate to integers; anything but 0 is true; 8-bit floats saturate unless told not to."""
    target = ctx.dtype("to") if ctx.op_type == "Cast" else ctx.element(1)
    return [convert_value(ctx, ctx[0], target, ctx.flag("saturate", True))]


_NARROW_MAX = {
    "f8E4M3FN": 448.0,
    "f8E4M3FNUZ": 240.0,
    "f8E5M2": 57344.0,
    "f8E5M2FNUZ": 57344.0,
    "f4E2M1FN": 6.0,
    "f6E2M3FN": 7.5,
    "f6E3M2FN": 28.0,
}
"""The largest finite value of the narrow float types."""


def convert_value(ctx: NodeContext, x: SSAValue, target: str, saturate: bool = True) -> SSAValue:
    """A value converted as ONNX's Cast does."""
    b, source = ctx.b, dtype_text(x.type)
    if target == "f8E8M0FNU" and source != target and not is_complex(source):
        return _power_of_two(ctx, x, saturate)
    if target == "i1" and source != "i1":
        return b.compare(x, ctx.b.scalar_like(x, 0), "NE")
    if target in _NARROW_MAX and saturate and source not in ("i1", target) and not is_complex(source):
        return _saturate(b, x, target)
    if is_float(source) and is_integer(target) and bit_width(target) < 32:
        # By way of a wide integer the result wraps like a C cast, as the reference evaluator's does.
        return b.convert(b.convert(x, "i32"), target)
    return b.convert(x, target)


def _saturate(b: Builder, x: SSAValue, target: str) -> SSAValue:
    most, source = _NARROW_MAX[target], dtype_text(x.type)
    wide = x if source in ("f32", "f64") else b.convert(x, "f64" if is_integer(source) else "f32")
    clamped = b.emit(hlo.ClampOp, b.scalar_like(wide, -most), wide, b.scalar_like(wide, most))
    return b.convert(clamped, target)


def _power_of_two(ctx: NodeContext, x: SSAValue, saturate: bool) -> SSAValue:
    """f8E8M0: the exponent alone, rounded as `round_mode` says; infinity and NaN are NaN, and signs are lost."""
    b, mode = ctx.b, ctx.string("round_mode", "up")
    x = b.convert(x, "f32")
    bits = b.emit(hlo.BitcastConvertOp, x, types=(with_element(x, "ui32"),))

    def number(value: int) -> SSAValue:
        return b.full_like(bits, value)

    exponent = b.emit(hlo.AndOp, b.emit(hlo.ShiftRightLogicalOp, bits, number(23)), number(0xFF))
    fraction = b.emit(hlo.AndOp, bits, number(0x7FFFFF))
    if mode == "up":
        raised = b.compare(fraction, number(0), "GT")
    elif mode == "nearest":
        half = b.compare(fraction, number(0x400000), "GT")
        tie = b.emit(hlo.AndOp, b.compare(fraction, number(0x400000), "EQ"), b.compare(exponent, number(0), "GT"))
        raised = b.emit(hlo.OrOp, half, tie)
    elif mode == "down":
        raised = b.full_like(b.compare(bits, bits, "NE"), False)
    else:
        ctx.invalid(f"round_mode is {mode!r}", "it must be up, down or nearest")
    most = 0xFE if saturate else 0xFF
    moved = b.minimum(b.add(exponent, b.convert(raised, "ui32")), number(most))
    special = b.compare(exponent, number(0xFF), "EQ")
    byte = b.convert(b.select(special, number(0xFF), moved), "ui8")
    return b.emit(hlo.BitcastConvertOp, byte, types=(with_element(byte, "f8E8M0FNU"),))


@imports("BitCast")
def bit_cast(ctx: NodeContext) -> Results:
    """BitCast: the same bits as another dtype of the same width. Booleans are bytes, as ONNX stores them."""
    b, x, source, target = ctx.b, ctx[0], ctx.element(), ctx.dtype("to")
    if _stored_width(source) != _stored_width(target):
        ctx.invalid(f"{source} and {target} do not have the same width", "the bits must be as many")
    if source == "i1":
        x, source = b.convert(x, "ui8"), "ui8"
    if target == "i1":
        byte = x if source == "ui8" else b.emit(hlo.BitcastConvertOp, x, types=(with_element(x, "ui8"),))
        return [b.compare(byte, b.full((), 0, "ui8"), "NE")]
    return [x if source == target else b.emit(hlo.BitcastConvertOp, x, types=(with_element(x, target),))]


def _stored_width(text: str) -> int:
    return 8 if text == "i1" else bit_width(text)


@imports("IsNaN")
def is_nan(ctx: NodeContext) -> Results:
    """IsNaN: only NaN differs from itself."""
    return [ctx.b.compare(ctx[0], ctx[0], "NE")]


@imports("IsInf")
def is_inf(ctx: NodeContext) -> Results:
    """IsInf: of either sign, or of the signs asked for."""
    b, x = ctx.b, ctx[0]
    positive, negative = ctx.flag("detect_positive", True), ctx.flag("detect_negative", True)
    if positive and negative:
        return [b.compare(b.emit(hlo.AbsOp, x), ctx.b.scalar_like(x, math.inf), "EQ")]
    if not positive and not negative:
        return [b.full(ctx.shape(), False, "i1")]
    return [b.compare(x, ctx.b.scalar_like(x, math.inf if positive else -math.inf), "EQ")]
