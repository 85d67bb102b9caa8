"""Derivatives of elementwise ops: arithmetic, functions, choices, complex numbers and their parts.

Where there is no derivative, the choice is JAX's (docs/guides/semantics.md, "Gradients").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.autodiff.sweeps import Maybe, Row
from gcomp.autodiff.table import (
    ByTangents,
    Expanded,
    Nothing,
    Partial,
    Partials,
    Refused,
    chooses,
    linear,
    nothing,
    partials,
)
from gcomp.autodiff.table import tangents as by_tangents
from gcomp.dtypes import is_complex
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.types import dtype_text, element_of, real_element, shape_of
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp

Factor = Callable[[Builder, SSAValue, SSAValue], SSAValue]
"""Of a unary op's operand and result: its derivative."""

# ---- factors ----


def _same(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    return g


def negate(b: Builder, x: SSAValue) -> SSAValue:
    """-x."""
    return b.emit(hlo.NegateOp, x)


def _negative(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    return negate(b, g)


def plus(b: Builder, x: SSAValue, number: float) -> SSAValue:
    """x + number."""
    return b.add(x, b.full_like(x, number))


def nonzero(b: Builder, x: SSAValue) -> SSAValue:
    """x, with 1 in place of zeros."""
    return b.select(b.compare(x, b.full_like(x, 0), "EQ"), b.full_like(x, 1), x)


# ---- arithmetic ----

partials(hlo.AddOp, _same, _same)
partials(hlo.SubtractOp, _same, _negative)
partials(hlo.MultiplyOp, lambda b, op, g: b.multiply(g, op.rhs), lambda b, op, g: b.multiply(g, op.lhs))
partials(hlo.NegateOp, _negative)


def _divisor(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """-g * x / y**2."""
    return b.divide(b.multiply(negate(b, g), b.divide(op.lhs, op.rhs)), op.rhs)


partials(hlo.DivideOp, lambda b, op, g: b.divide(g, op.rhs), _divisor)


def _modulus(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """-g * trunc(x / y)."""
    quotient = b.divide(op.lhs, op.rhs)
    whole = b.emit(hlo.FloorOp, b.emit(hlo.AbsOp, quotient))
    return b.multiply(negate(b, g), b.multiply(b.emit(hlo.SignOp, quotient), whole))


_REMAINDER = Partials((_same, _modulus))
_COMPLEX_REMAINDER = Refused("the specification leaves the remainder of complex numbers undecided", "leave it out")


@chooses(hlo.RemainderOp)
def remainder(op: Any) -> Row:
    """Of truncated division, for real numbers."""
    return _COMPLEX_REMAINDER if is_complex(dtype_text(op.result.type)) else _REMAINDER


def _base(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """g * y * x**(y - 1); 0 where y is 0, also for an x of 0."""
    x, y = op.operands
    none = b.compare(y, b.full_like(y, 0), "EQ")
    lower = b.select(none, b.full_like(y, 1), plus(b, y, -1))
    factor = b.select(none, b.full_like(y, 0), b.multiply(y, b.emit(hlo.PowerOp, x, lower)))
    return b.multiply(g, factor)


def _exponent(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """g * log(x) * x**y; 0 where x is 0."""
    return b.multiply(g, b.multiply(b.emit(hlo.LogOp, nonzero(b, op.lhs)), op.result))


partials(hlo.PowerOp, _base, _exponent)


def _atan2(operand: int) -> Partial:
    def factor(b: Builder, op: Any, g: SSAValue) -> SSAValue:
        y, x = op.operands
        total = b.add(b.multiply(y, y), b.multiply(x, x))
        return b.multiply(g, b.divide(x if operand == 0 else negate(b, y), total))

    return factor


partials(hlo.Atan2Op, _atan2(0), _atan2(1))


def _is_zero(value: SSAValue) -> bool:
    """Whether a value is a constant of zeros, of real numbers."""
    source = value.owner
    while isinstance(source, hlo.BroadcastInDimOp):
        source = source.operand.owner
    return (
        isinstance(source, hlo.ConstantOp)
        and not is_complex(dtype_text(value.type))
        and not source.elements_attr.array().any()
    )


def _extreme(own: int) -> Partial:
    """All of the derivative where an operand is the result, half of it where both are; of relu's 0, none."""

    def factor(b: Builder, op: Any, g: SSAValue) -> SSAValue:
        mine, other = op.operands[own], op.operands[1 - own]
        if isinstance(op, hlo.MaximumOp) and _is_zero(other):
            return b.select(b.compare(mine, other, "GT"), g, b.full_like(g, 0))
        share = b.select(b.compare(other, op.result, "EQ"), b.full_like(g, 0.5), b.full_like(g, 1))
        return b.multiply(g, b.select(b.compare(mine, op.result, "EQ"), share, b.full_like(g, 0)))

    return factor


for _kind in (hlo.MaximumOp, hlo.MinimumOp):
    partials(_kind, _extreme(0), _extreme(1))


# ---- functions ----


def by(factor: Factor) -> Partial:
    """The product with a factor that is computed of operand and result."""
    return lambda b, op, g: b.multiply(g, factor(b, op.operand, op.result))


def _tanh(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """g * (1 + r) * (1 - r)."""
    return b.multiply(b.add(g, b.multiply(g, op.result)), b.subtract(b.full_like(g, 1), op.result))


partials(hlo.ExponentialOp, by(lambda b, x, r: r))
partials(hlo.ExponentialMinusOneOp, by(lambda b, x, r: plus(b, r, 1)))
partials(hlo.LogOp, lambda b, op, g: b.divide(g, op.operand))
partials(hlo.LogPlusOneOp, lambda b, op, g: b.divide(g, plus(b, op.operand, 1)))
partials(hlo.LogisticOp, by(lambda b, x, r: b.multiply(r, b.subtract(b.full_like(r, 1), r))))
partials(hlo.TanhOp, _tanh)
partials(hlo.SineOp, by(lambda b, x, r: b.emit(hlo.CosineOp, x)))
partials(hlo.CosineOp, by(lambda b, x, r: negate(b, b.emit(hlo.SineOp, x))))
for _kind in (hlo.TanOp, chlo.TanOp):
    partials(_kind, by(lambda b, x, r: plus(b, b.multiply(r, r), 1)))
partials(hlo.SqrtOp, by(lambda b, x, r: b.divide(b.full_like(r, 0.5), r)))
partials(hlo.RsqrtOp, by(lambda b, x, r: b.scale(b.divide(r, x), -0.5)))
partials(hlo.CbrtOp, by(lambda b, x, r: b.divide(b.full_like(r, 1 / 3), b.multiply(r, r))))

# ---- choices ----


def _select(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    zero = b.full_like(g, 0)
    return b.emit(hlo.SelectOp, op.pred, *((g, zero) if operand == 1 else (zero, g)))


linear(hlo.SelectOp, _select, 1, 2)


def _above(b: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    """x > y, in the order that maximum has for complex numbers."""
    if not is_complex(dtype_text(x.type)):
        return b.compare(x, y, "GT")
    return b.emit(hlo.AndOp, b.compare(b.maximum(x, y), x, "EQ"), b.compare(x, y, "NE"))


def _pass_over(b: Builder, x: SSAValue, kept: SSAValue, bound: SSAValue) -> SSAValue:
    """Where a number is not kept for a bound, and is not the same."""
    return b.emit(hlo.AndOp, b.emit(hlo.NotOp, kept), b.compare(x, bound, "NE"))


@by_tangents(hlo.ClampOp)
def clamp(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """Of the operand strictly between the bounds, of a bound where it strictly cuts something off."""
    shape = shape_of(op.result)
    low, x, high = (b.broadcast_to(v, shape) for v in op.operands)
    raised = b.maximum(x, low)
    inside = b.emit(hlo.AndOp, _above(b, x, low), _above(b, high, x))
    if is_complex(dtype_text(x.type)):
        # A bound is taken where numbers have no order, too: comparisons with NaN are false.
        over, lifted = (
            _pass_over(b, raised, _above(b, high, raised), high),
            _pass_over(b, x, _above(b, x, low), low),
        )
    else:
        over, lifted = _above(b, raised, high), _above(b, low, x)
    under = b.emit(hlo.AndOp, lifted, _above(b, high, low))
    total: Maybe = None
    for tangent, here in zip(tangents, (under, inside, over), strict=True):
        if tangent is not None:
            wide = b.broadcast_to(tangent, shape)
            part = b.select(here, wide, b.full_like(wide, 0))
            total = part if total is None else b.add(total, part)
    return [total]


# ---- absolute values, signs and complex numbers ----


def _absolute(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    return b.select(b.compare(op.operand, b.full_like(op.operand, 0), "GE"), g, negate(b, g))


def _modulus_of(b: Builder, op: Any, tangents: Sequence[Maybe]) -> Sequence[Maybe]:
    """The real part of `t * conj(z) / |z|`; 0 where z is."""
    (tangent,) = tangents
    if tangent is None:
        return [None]
    safe = b.convert(nonzero(b, op.result), element_of(op.operand))
    direction = b.divide(b.emit(chlo.ConjOp, op.operand), safe)
    return [b.emit(hlo.RealOp, b.multiply(tangent, direction))]


def _direction(b: Builder, op: Any) -> Sequence[SSAValue]:
    """`z / |z|` of complex numbers, 0 of 0."""
    length = b.emit(hlo.AbsOp, op.operand)
    none = b.compare(length, b.full_like(length, 0), "EQ")
    return [
        b.select(
            none,
            b.full_like(op.operand, 0),
            b.divide(op.operand, b.convert(nonzero(b, length), element_of(op.operand))),
        )
    ]


_ABS, _COMPLEX_ABS = Partials((_absolute,)), ByTangents(_modulus_of)
_SIGN, _COMPLEX_SIGN = Nothing("it is constant on both sides of 0"), Expanded(_direction)


def _of_complex(op: Any) -> bool:
    return is_complex(dtype_text(op.operand.type))


@chooses(hlo.AbsOp)
def absolute(op: Any) -> Row:
    """The derivative of x is 1 at 0."""
    return _COMPLEX_ABS if _of_complex(op) else _ABS


@chooses(hlo.SignOp)
def sign(op: Any) -> Row:
    """Zero for real numbers."""
    return _COMPLEX_SIGN if _of_complex(op) else _SIGN


def zero_part(b: Builder, x: SSAValue) -> SSAValue:
    """A zero of the real type of `x`, complex or not."""
    return b.full(shape_of(x), 0, real_element(x))


def _real(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    return b.emit(hlo.ComplexOp, g, zero_part(b, g)) if _of_complex(op) else g


def _imaginary(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    return b.emit(hlo.ComplexOp, zero_part(b, g), negate(b, g)) if _of_complex(op) else b.full_like(g, 0)


def _parts(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    return b.emit(hlo.RealOp, g) if operand == 0 else negate(b, b.emit(hlo.ImagOp, g))


linear(hlo.RealOp, _real, 0)
linear(hlo.ImagOp, _imaginary, 0)
linear(hlo.ComplexOp, _parts, 0, 1)
linear(chlo.ConjOp, lambda b, op, g, operand: b.emit(chlo.ConjOp, g), 0)
linear(ViewAsRealOp, lambda b, op, g, operand: b.emit(chlo.ConjOp, b.emit(ViewAsComplexOp, g)), 0)
linear(ViewAsComplexOp, lambda b, op, g, operand: b.emit(ViewAsRealOp, b.emit(chlo.ConjOp, g)), 0)

# ---- other element types ----


def _convert(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    """Between real and complex numbers, the transpose of adding an imaginary part is to drop it, and the other way."""
    source, target = (is_complex(dtype_text(v.type)) for v in (op.operand, op.result))
    if source and not target:
        part = b.convert(g, real_element(op.operand))
        return b.emit(hlo.ComplexOp, part, b.full_like(part, 0))
    return b.emit(hlo.ConvertOp, b.emit(hlo.RealOp, g) if target and not source else g, types=(op.operand.type,))


def _round(b: Builder, op: Any, g: SSAValue, operand: int) -> SSAValue:
    return b.emit(hlo.ReducePrecisionOp, g, **{k: op.value(k) for k in ("exponent_bits", "mantissa_bits")})


linear(hlo.ConvertOp, _convert, 0)
linear(hlo.ReducePrecisionOp, _round, 0)

nothing("it is constant between whole numbers", hlo.FloorOp, hlo.CeilOp, hlo.RoundNearestAfzOp, hlo.RoundNearestEvenOp)
_BITS, _SAME = Nothing("it reads bits, not numbers"), Partials((_same,))


@chooses(hlo.BitcastConvertOp)
def bitcast(op: Any) -> Row:
    """The bits of a number read as those of the same type are the number."""
    return _SAME if op.operand.type == op.result.type else _BITS


nothing(
    "its result is no float", hlo.CompareOp, hlo.IsFiniteOp, hlo.AndOp, hlo.OrOp, hlo.XorOp, hlo.NotOp, hlo.PopcntOp,
    hlo.CountLeadingZerosOp, hlo.ShiftLeftOp, hlo.ShiftRightArithmeticOp, hlo.ShiftRightLogicalOp,
)  # fmt: skip

__all__ = ["by", "negate", "nonzero", "plus", "zero_part"]
