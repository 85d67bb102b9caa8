"""Derivatives of CHLO's functions, and of its ops that broadcast."""

from __future__ import annotations

import math
from typing import Any

from xdsl.ir import SSAValue

from gcomp.autodiff.elementwise import by, negate, plus
from gcomp.autodiff.table import Partial, Partials, Refused, Row, chooses, expands, nothing, partials, refuses
from gcomp.decompositions.broadcasting import broadcasting
from gcomp.dtypes import is_complex
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.families import PLAIN
from gcomp.ir.types import dtype_text, element_of, rank_of, shape_of

# ---- functions of one number ----


def _square(b: Builder, x: SSAValue) -> SSAValue:
    return b.multiply(x, x)


def _root(b: Builder, x: SSAValue) -> SSAValue:
    return b.emit(hlo.RsqrtOp, x)


def _gauss(sign: float) -> Partial:
    """`sign * 2 / sqrt(pi) * exp(-x**2)`."""
    factor = sign * 2 / math.sqrt(math.pi)
    return by(lambda b, x, r: b.scale(b.emit(hlo.ExponentialOp, negate(b, _square(b, x))), factor))


def _less_than_one(b: Builder, x: SSAValue) -> SSAValue:
    """`1 - x**2`."""
    return b.subtract(b.full_like(x, 1), _square(b, x))


def _acosh(b: Builder, x: SSAValue, r: SSAValue) -> SSAValue:
    """Two roots, as the principal root of the product is not theirs on all of the complex plane."""
    return b.multiply(_root(b, plus(b, x, -1)), _root(b, plus(b, x, 1)))


def _erf_inv(b: Builder, x: SSAValue, r: SSAValue) -> SSAValue:
    return b.scale(b.emit(hlo.ExponentialOp, _square(b, r)), math.sqrt(math.pi) / 2)


partials(chlo.SquareOp, by(lambda b, x, r: b.scale(x, 2)))
partials(chlo.SinhOp, by(lambda b, x, r: b.emit(chlo.CoshOp, x)))
partials(chlo.CoshOp, by(lambda b, x, r: b.emit(chlo.SinhOp, x)))
partials(chlo.AsinOp, by(lambda b, x, r: _root(b, _less_than_one(b, x))))
partials(chlo.AcosOp, by(lambda b, x, r: negate(b, _root(b, _less_than_one(b, x)))))
partials(chlo.AtanOp, lambda b, op, g: b.divide(g, plus(b, _square(b, op.operand), 1)))
partials(chlo.AsinhOp, by(lambda b, x, r: _root(b, plus(b, _square(b, x), 1))))
partials(chlo.AcoshOp, by(_acosh))
partials(
    chlo.AtanhOp,
    lambda b, op, g: b.divide(b.divide(g, plus(b, op.operand, 1)), b.subtract(b.full_like(g, 1), op.operand)),
)
partials(chlo.ErfOp, _gauss(1))
partials(chlo.ErfcOp, _gauss(-1))
partials(chlo.ErfInvOp, by(_erf_inv))
partials(chlo.LgammaOp, by(lambda b, x, r: b.emit(chlo.DigammaOp, x)))
partials(chlo.DigammaOp, by(lambda b, x, r: b.emit(chlo.PolygammaOp, b.full_like(x, 1), x)))

# ---- of two ----


def _refuse_order(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    Refused("its order is a whole number", "differentiate in the argument only").refuse(op)


def _polygamma(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    return b.multiply(g, b.emit(chlo.PolygammaOp, plus(b, op.lhs, 1), op.rhs))


def _refuse_exponent(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    Refused("no function of the op set is its derivative in the exponent", "differentiate in q only").refuse(op)


def _zeta(b: Builder, op: Any, g: SSAValue) -> SSAValue:
    """`-x * zeta(x + 1, q)`."""
    return b.multiply(g, b.multiply(negate(b, op.lhs), b.emit(chlo.ZetaOp, plus(b, op.lhs, 1), op.rhs)))


partials(chlo.PolygammaOp, _refuse_order, _polygamma)
partials(chlo.ZetaOp, _refuse_exponent, _zeta)
partials(chlo.NextAfterOp, lambda b, op, g: g, None)

# ---- the exponentially scaled Bessel function of order 1 ----

_FAR = 30.0
_NODES = 64
"""So many nodes on a circle give i0e to the last bits of f64 up to `_FAR`, by the trapezoidal rule."""
_TERMS = 18


def _i0e(b: Builder, size: SSAValue) -> SSAValue:
    """The scaled function of order 0 for a positive number: an integral over a circle, or its series at infinity."""
    shape, rank, text = shape_of(size), rank_of(size), dtype_text(size.type)
    near = b.minimum(size, b.full_like(size, _FAR))
    half = range(_NODES // 2 + 1)
    nodes = b.constant([math.cos(2 * math.pi * k / _NODES) - 1 for k in half], text)
    weights = b.constant([(1 if k in (0, _NODES // 2) else 2) / _NODES for k in half], text)
    wide = (*shape, len(half))
    exponents = b.multiply(b.broadcast(near, wide, range(rank)), b.broadcast(nodes, wide, (rank,)))
    terms = b.multiply(b.emit(hlo.ExponentialOp, exponents), b.broadcast(weights, wide, (rank,)))
    inner = b.reduce(hlo.AddOp, terms, [rank])
    far = b.maximum(size, b.full_like(size, _FAR))
    inverse, series = b.divide(b.full_like(far, 1), far), b.full_like(far, 1)
    for k in range(_TERMS, 0, -1):
        series = plus(b, b.multiply(series, b.scale(inverse, (2 * k - 1) ** 2 / (8 * k))), 1)
    outer = b.multiply(series, b.scale(_root(b, far), 1 / math.sqrt(2 * math.pi)))
    return b.select(b.compare(size, b.full_like(size, _FAR), "LT"), inner, outer)


def _bessel(b: Builder, x: SSAValue, r: SSAValue) -> SSAValue:
    """`i0e(x) - r * (sign(x) + 1 / x)`, and 1 / 2 near 0."""
    wide, result = b.widen(x), b.widen(r)
    size = b.emit(hlo.AbsOp, wide)
    tiny = b.compare(size, b.full_like(size, 1e-16 if dtype_text(size.type) == "f64" else 1e-7), "LE")
    safe = b.select(tiny, b.full_like(size, 1), wide)
    slope = b.add(b.emit(hlo.SignOp, safe), b.divide(b.full_like(safe, 1), safe))
    found = b.subtract(_i0e(b, b.emit(hlo.AbsOp, safe)), b.multiply(result, slope))
    return b.convert(b.select(tiny, b.full_like(found, 0.5), found), element_of(x))


_BESSEL = Partials((by(_bessel),))
_COMPLEX_BESSEL = Refused("nothing here computes the Bessel function of complex numbers", "leave it out")


@chooses(chlo.BesselI1eOp)
def bessel(op: Any) -> Row:
    """Of real numbers."""
    return _COMPLEX_BESSEL if is_complex(dtype_text(op.result.type)) else _BESSEL


# ---- ops that broadcast ----

_INTEGERS = (
    chlo.BroadcastCompareOp, chlo.BroadcastAndOp, chlo.BroadcastOrOp, chlo.BroadcastXorOp, chlo.BroadcastShiftLeftOp,
    chlo.BroadcastShiftRightArithmeticOp, chlo.BroadcastShiftRightLogicalOp,
)  # fmt: skip
expands(*(op for op in PLAIN if op not in _INTEGERS))(broadcasting)

nothing("its result is no float", chlo.IsInfOp, chlo.IsNegInfOp, chlo.IsPosInfOp, chlo.MulhiOp, *_INTEGERS)
nothing("it has no operand, or reads a shape only", chlo.ConstantOp, chlo.ConstantLikeOp)
refuses(
    "it is a helper within definitions of other functions", chlo.AsinAcosKernelOp,
    fix="differentiate asin, acos, asinh or acosh themselves",
)  # fmt: skip
