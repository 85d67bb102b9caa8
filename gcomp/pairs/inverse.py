"""Inverse trigonometric and hyperbolic functions of complex numbers, as formulas of their parts.

asin and acos are those of Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine functions using
exception handling" (ACM TOMS 23, 1997), in which nothing cancels; atanh is Kahan's, "Branch cuts for complex elementary
functions" (1987). The others follow from them. They are right where all parts are finite.
"""

from __future__ import annotations

import math

from gcomp.decompositions.real import Real
from gcomp.ir import stablehlo as hlo
from gcomp.pairs.functions import Number, log, modulus, product, quotient, sqrt, times_i

_LARGE = math.sqrt(1.7976931348623157e308) / 8
"""Squares of numbers below are finite, with room for a few of them."""
_SMALL = 4 * math.sqrt(2.2250738585072014e-308)
"""Squares of numbers above are normal."""
_WHOLE = 2.0**52
"""From here on, 1 is not seen beside a number."""


def _log1p(x: Real) -> Real:
    return x.to(hlo.LogPlusOneOp)


def _sqrt(x: Real) -> Real:
    return x.to(hlo.SqrtOp)


def _arcs(z: Number) -> tuple[Real, Real]:
    """Of |Re z| and |Im z|: what is beside Re z in a right triangle with the angle asin, and |Im asin z|."""
    x, y = abs(z[0]), abs(z[1])
    largest, smallest = x.to(hlo.MaximumOp, y), x.to(hlo.MinimumOp, y)
    huge = largest >= _LARGE
    right, left = x + 1.0, x - 1.0
    far, near = modulus((right, y)), modulus((left, y))
    a = (far + near) * 0.5
    beyond, above, below = far + right, near + left, near - left
    half = (a + x) * 0.5
    inside = x < 1.0
    root = _sqrt(half * (y * y / beyond + below))
    side = (x > 1.0).choose(y * _sqrt(half / beyond + half / above), root)

    # a - 1, which is small where a is near 1.
    squares = y * y * 0.5
    over = squares / beyond + inside.choose(squares / below, above * 0.5)
    over = (inside & (a > 1.5)).choose(a - 1.0, over)
    height = _log1p(over + _sqrt(over * (a + 1.0)))
    height = (inside & (y < _SMALL)).choose(y / _sqrt(-left * right), height)
    ratio = smallest / largest
    outside = largest.to(hlo.LogOp) + math.log(2) + _log1p(ratio * ratio) * 0.5
    return huge.choose(y, side), huge.choose(outside, height)


def asin(z: Number) -> Number:
    """asin z, with real parts in [-pi/2, pi/2]."""
    side, height = _arcs(z)
    return z[0].to(hlo.Atan2Op, side), height.with_sign(z[1])


def acos(z: Number) -> Number:
    """acos z, with real parts in [0, pi]."""
    side, height = _arcs(z)
    return side.to(hlo.Atan2Op, z[0]), -height.with_sign(z[1])


def asinh(z: Number) -> Number:
    """asinh z = -i asin(iz)."""
    real, imag = asin((z[1], z[0]))
    return imag, real


def acosh(z: Number) -> Number:
    """acosh z, i or -i times acos z: its real part is positive."""
    side, height = _arcs(z)
    return height, side.to(hlo.Atan2Op, z[0]).with_sign(z[1])


def atanh(z: Number) -> Number:
    """atanh z, with imaginary parts in [-pi/2, pi/2]."""
    x, y = abs(z[0]), abs(z[1])
    size = modulus((x, y))
    huge, pole, narrow = size > _WHOLE, x.equals(1.0), y < 2.0**-52
    left = x - 1.0
    real = _log1p(x * 4.0 / (left * left + y * y)) * 0.25
    real = (pole & narrow).choose((y.of(math.log(2)) - y.to(hlo.LogOp)) * 0.5, real)
    real = huge.choose(x / size / size, real)
    beside = -left * (x + 1.0)
    angle = (y * 2.0).to(hlo.Atan2Op, narrow.choose(beside, beside - y * y)) * 0.5
    angle = pole.choose(y.of(2.0).to(hlo.Atan2Op, -y) * 0.5, angle)
    angle = huge.choose(y.of(math.pi / 2), angle)
    return real.with_sign(z[0]), angle.with_sign(z[1])


def atan(z: Number) -> Number:
    """atan z = -i atanh(iz)."""
    real, imag = atanh((z[1], z[0]))
    return imag, real


def atan2(y: Number, x: Number) -> Number:
    """-i log((x + iy) / sqrt(xx + yy)): the angle of a point, where both are real."""
    (a, b), (c, d) = product(x, x), product(y, y)
    (e, f), (g, h) = x, times_i(y)
    real, imag = log(quotient((e + g, f + h), sqrt((a + c, b + d))))
    return imag, -real
