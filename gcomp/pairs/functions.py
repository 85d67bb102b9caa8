"""Functions of complex numbers, as formulas of their parts.

They are evaluated in f64, in which nothing that counts of an f32 overflows or cancels, and rounded once. Quotients are
those of C99 (Annex G), as the reference's; the other functions are right where all parts are finite.
"""

from __future__ import annotations

import math

from gcomp.decompositions.real import INF, NAN, Real, Test
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo

Number = tuple[Real, Real]
"""A tensor of complex numbers: the real part and the imaginary part."""


def _exp(x: Real) -> Real:
    return x.to(hlo.ExponentialOp)


def _sin(x: Real) -> Real:
    return x.to(hlo.SineOp)


def _cos(x: Real) -> Real:
    return x.to(hlo.CosineOp)


def _choose(test: Test, z: Number, w: Number) -> Number:
    return test.choose(z[0], w[0]), test.choose(z[1], w[1])


def _plus(z: Number, number: float) -> Number:
    return z[0] + number, z[1]


def product(z: Number, w: Number) -> Number:
    """zw."""
    (a, b), (c, d) = z, w
    return a * c - b * d, a * d + b * c


def times_i(z: Number) -> Number:
    """iz."""
    return -z[1], z[0]


def modulus(z: Number) -> Real:
    """|z|, without overflow on the way."""
    a, b = abs(z[0]), abs(z[1])
    large, small = a.to(hlo.MaximumOp, b), a.to(hlo.MinimumOp, b)
    ratio = small / large
    size = large.equals(0.0).choose(large, large * (ratio * ratio + 1.0).to(hlo.SqrtOp))
    return (a.is_infinite | b.is_infinite).choose(a.of(INF), size)


def _reduced(z: Number) -> tuple[Number, Test]:
    """z / 8 where |z| is too large for a number, or nearly so, else z; and where that is."""
    huge = abs(z[0]).to(hlo.MaximumOp, abs(z[1])) > 2.0**1000
    factor = huge.choose(z[0].of(0.125), 1.0)
    return (z[0] * factor, z[1] * factor), huge


def _log_modulus(z: Number) -> Real:
    """log |z|, also where |z| overflows."""
    reduced, huge = _reduced(z)
    return modulus(reduced).to(hlo.LogOp) + huge.choose(z[0].of(math.log(8)), 0.0)


def quotient(z: Number, w: Number) -> Number:
    """z / w by the algorithm of C99 Annex G.5.1: scaled, infinities and zeros recovered."""
    (a, b), (c, d) = z, w
    # Where one part is NaN, the other says how large the divisor is.
    largest = c.is_nan.choose(abs(d), d.is_nan.choose(abs(c), abs(c).to(hlo.MaximumOp, abs(d))))
    scalable = largest.is_finite & (largest > 0.0)
    scale = scalable.choose(largest.scale(), 1.0)
    sc, sd = c * scale, d * scale
    norm = sc * sc + sd * sd
    real, imag = (a * sc + b * sd) / norm * scale, (b * sc - a * sd) / norm * scale
    lost = real.is_nan & imag.is_nan

    by_zero = lost & norm.equals(0.0) & ~(a.is_nan & b.is_nan)
    infinity = c.of(INF).with_sign(c)
    found = _choose(by_zero, (infinity * a, infinity * b), (real, imag))

    ua, ub, uc, ud = (x.is_infinite.choose(x.of(1.0), 0.0).with_sign(x) for x in (a, b, c, d))
    infinite = lost & ~by_zero & (a.is_infinite | b.is_infinite) & c.is_finite & d.is_finite
    found = _choose(infinite, ((ua * c + ub * d) * INF, (ub * c - ua * d) * INF), found)

    vanishing = lost & ~by_zero & ~infinite & largest.is_infinite & a.is_finite & b.is_finite
    return _choose(vanishing, ((a * uc + b * ud) * 0.0, (b * uc - a * ud) * 0.0), found)


def _reciprocal(z: Number) -> Number:
    return quotient((z[0].of(1.0), z[0].of(0.0)), z)


def exponential(z: Number) -> Number:
    """exp z; a large exponential is halved, since it may overflow where its products do not."""
    x, y = z
    large = x > 700.0
    size = _exp(large.choose(x * 0.5, x))
    again = large.choose(size, 1.0)
    found = size * _cos(y) * again, y.equals(0.0).choose(y, size * _sin(y) * again)
    # Infinitely far away there is no angle: 0, or infinity in no direction.
    found = _choose(x.equals(INF) & ~y.is_finite, (x, x.of(NAN)), found)
    return _choose(x.equals(-INF) & ~y.is_finite, (x.of(0.0), x.of(0.0)), found)


def exponential_minus_one(z: Number) -> Number:
    """exp(z) - 1; the real part by the half angle, so that neither 1 nor cos cancels."""
    half = _sin(z[1] * 0.5)
    return z[0].to(hlo.ExponentialMinusOneOp) * _cos(z[1]) - half * half * 2.0, exponential(z)[1]


def log(z: Number) -> Number:
    """log z; near the unit circle, of what the modulus differs from 1 by."""
    a, b = abs(z[0]), abs(z[1])
    large, small = a.to(hlo.MaximumOp, b), a.to(hlo.MinimumOp, b)
    near = (large > 0.5) & (large < 2.0)
    precise = ((large - 1.0) * (large + 1.0) + small * small).to(hlo.LogPlusOneOp) * 0.5
    return near.choose(precise, _log_modulus(z)), z[1].to(hlo.Atan2Op, z[0])


def log_plus_one(z: Number) -> Number:
    """log(1 + z)."""
    shifted = _plus(z, 1.0)
    return _log_modulus(shifted), z[1].to(hlo.Atan2Op, shifted[0])


def sqrt(z: Number) -> Number:
    """The principal root: what does not cancel is computed, and the other part follows from it."""
    x, y = z
    largest = abs(x).to(hlo.MaximumOp, abs(y))
    # An even power of two, whose root is one too.
    down, up = largest > 2.0**1000, (largest < 2.0**-900) & (largest > 0.0)
    factor, back = (
        down.choose(x.of(f), up.choose(x.of(g), 1.0)) for f, g in ((2.0**-100, 2.0**200), (2.0**50, 2.0**-100))
    )
    sx, sy = x * factor, y * factor
    root = ((abs(sx) + modulus((sx, sy))) * 0.5).to(hlo.SqrtOp)
    other = abs(sy) / (root * 2.0)
    left = x < 0.0
    found = left.choose(other, root) * back, (left.choose(root, other) * back).with_sign(y)
    found = _choose(largest.equals(0.0), (x.of(0.0), y), found)
    return _choose(y.is_infinite, (x.of(INF), y), found)


def sine(z: Number) -> Number:
    """sin z; on the axes one part is 0, also where the other is infinite."""
    x, y = z
    real, imag = _sin(x) * y.to(chlo.CoshOp), _cos(x) * y.to(chlo.SinhOp)
    return x.equals(0.0).choose(x, real), y.equals(0.0).choose(y, imag)


def cosine(z: Number) -> Number:
    """cos z; on the axes the imaginary part is 0, also where the real one is infinite."""
    x, y = z
    real, imag = _cos(x) * y.to(chlo.CoshOp), -(_sin(x) * y.to(chlo.SinhOp))
    zero = x.of(0.0).with_sign(x) * x.of(-1.0).with_sign(y)
    return real, (x.equals(0.0) | y.equals(0.0)).choose(zero, imag)


def sinh(z: Number) -> Number:
    """sinh z = -i sin(iz)."""
    real, imag = sine(times_i(z))
    return imag, -real


def cosh(z: Number) -> Number:
    """cosh z = cos(iz)."""
    return cosine(times_i(z))


_SATURATED = 20.0
"""Beyond this, tanh of a real f64 is 1."""


def tanh(z: Number) -> Number:
    """tanh z, by Kahan's formula; far from the imaginary axis its imaginary part is what is left of it.

    On an axis the other part is 0, and so is the imaginary one infinitely far away, where a part is NaN too (C11, G.6).
    """
    x, y = z
    bounded = x.to(hlo.MaximumOp, -_SATURATED).to(hlo.MinimumOp, _SATURATED)
    slope, s = y.to(hlo.TanOp), bounded.to(chlo.SinhOp)
    beta, rho = slope * slope + 1.0, (s * s + 1.0).to(hlo.SqrtOp)
    below = beta * s * s + 1.0
    inside = beta * rho * s / below, slope / below
    left = (x.is_infinite & ~y.is_finite).choose(x.of(0.0), _sin(y) * _cos(y) * 4.0 * _exp(abs(x) * -2.0))
    real, imag = _choose(abs(x) > _SATURATED, (x.of(1.0).with_sign(x), left), inside)
    return x.equals(0.0).choose(x, real), y.equals(0.0).choose(y, imag)


def tan(z: Number) -> Number:
    """tan z = -i tanh(iz)."""
    real, imag = tanh(times_i(z))
    return imag, -real


def logistic(z: Number) -> Number:
    """1 / (1 + exp(-z))."""
    return _reciprocal(_plus(exponential((-z[0], -z[1])), 1.0))


def rsqrt(z: Number) -> Number:
    """1 / sqrt(z)."""
    return _reciprocal(sqrt(z))


def cbrt(z: Number) -> Number:
    """The principal cube root."""
    reduced, huge = _reduced(z)
    angle = z[1].to(hlo.Atan2Op, z[0]) * (1 / 3)
    radius = modulus(reduced).to(hlo.CbrtOp) * huge.choose(z[0].of(2.0), 1.0)
    return radius * _cos(angle), radius * _sin(angle)


def power(z: Number, w: Number) -> Number:
    """exp(w log z); z ** 0 is 1, and 0 ** w is 0 where the real part of w is positive and NaN elsewhere."""
    found = exponential(product(w, log(z)))
    zero = z[0].equals(0.0) & z[1].equals(0.0)
    nothing = (w[0] > 0.0).choose(w[0].of(0.0), NAN)
    found = _choose(zero, (nothing, nothing), found)
    return _choose(w[0].equals(0.0) & w[1].equals(0.0), (w[0].of(1.0), w[0].of(0.0)), found)


def conj(z: Number) -> Number:
    """The number on the other side of the real axis."""
    return z[0], -z[1]


def square(z: Number) -> Number:
    """z z."""
    return product(z, z)


def sign(z: Number) -> Number:
    """z / |z|: 0 at 0, NaN at infinities and where either part is NaN."""
    z, _ = _reduced(z)
    size = modulus(z)
    none = size.is_infinite | z[0].is_nan | z[1].is_nan
    zero = size.equals(0.0)
    real, imag = (none.choose(v.of(NAN), zero.choose(v.of(0.0), v / size)) for v in z)
    return real, imag
