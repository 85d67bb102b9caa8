"""Special functions of real numbers that no GPU has an instruction for, as formulas on f64.

They mean what `gcomp.reference.numpy.special` means, at poles, infinities and where a term underflows, too. The
sources are the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov: digamma by its recurrence
(5.5.2), reflection (5.5.4) and asymptotic series (5.11.2); factorials by Stirling's series (5.11.1); the Hurwitz zeta
function by Euler-Maclaurin summation (25.11.5, extended); the Bessel function by its power series (10.25.2) and its
asymptotic one (10.40.1). Their coefficients are computed here; only the Bernoulli numbers (24.2) are copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from gcomp.decompositions.real import INF, NAN, Real, Test
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.ir.op import GraphOp
from gcomp.ir.types import element_of

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""B(2k) for k = 1 .. 8, which is as many terms as count in f64 where the series below are used."""


def _floor(x: Real) -> Real:
    return x.to(hlo.FloorOp)


def _is_whole(x: Real) -> Test:
    return x.equals(_floor(x))


def _is_even(x: Real) -> Test:
    """Whether a whole number is even; an infinity is not."""
    return _is_whole(x * 0.5) & x.is_finite


def _is_pole(x: Real) -> Test:
    """Whether it is 0, -1, -2, ... or minus infinity."""
    return ~(x > 0.0) & _is_whole(x)


def _one_minus(x: Real) -> Real:
    return -x + 1.0


def _polynomial(coefficients: Sequence[float], x: Real) -> Real:
    """The sum of coefficients[k] * x ** k."""
    total = x.of(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


# ---- digamma ----

_ASYMPTOTIC = 10
"""From here on the asymptotic series has the precision of f64."""


def digamma(x: Real) -> Real:
    """The logarithmic derivative of the gamma function; NaN at its poles and at minus infinity."""
    reflected = x < 0.5
    y = reflected.choose(_one_minus(x), x)
    small = y < _ASYMPTOTIC
    large = small.choose(y + _ASYMPTOTIC, y)
    inverse = x.of(1.0) / (large * large)
    series = _polynomial([b / (2 * k) for k, b in enumerate(_BERNOULLI, start=1)], inverse) * inverse
    value = large.to(hlo.LogOp) - x.of(0.5) / large - series
    value = small.choose(value - _harmonic(y), value)
    fraction = x - x.to(hlo.RoundNearestEvenOp)
    value = reflected.choose(value - x.of(math.pi) / (fraction * math.pi).to(hlo.TanOp), value)
    return _is_pole(x).choose(x.of(NAN), value)


def _harmonic(y: Real) -> Real:
    """1 / y + 1 / (y + 1) + ... + 1 / (y + 9): the first and the last term, the second and the last but one, ..."""
    last = _ASYMPTOTIC - 1
    product = y * (y + last)
    total = y.of(1.0) / product
    for k in range(1, _ASYMPTOTIC // 2):
        total = total + y.of(1.0) / (product + k * (last - k))
    return total * (y + y + last)


# ---- polygamma ----

_EXACT, _LARGEST = 8, 170
"""Factorials up to the former are products; that of the latter is the largest in f64."""


def polygamma(n: Real, x: Real) -> Real:
    """The n-th derivative of digamma, (-1) ** (n + 1) * n! * zeta(n + 1, x); NaN unless n is 0, 1, 2, ..."""
    size = _factorial(n)
    # Of a negative order, zeta is NaN.
    value = _is_even(n).choose(-size, size) * zeta(n + 1.0, x)
    value = n.equals(0.0).choose(digamma(x), value)
    return _is_whole(n).choose(value, NAN)


def _factorial(n: Real) -> Real:
    """n! for n = 0, 1, 2, ..., and infinity where it is one in f64."""
    product = n.to(hlo.MaximumOp, 1.0)
    for k in range(1, _EXACT - 1):
        product = product * (n - k).to(hlo.MaximumOp, 1.0)
    # Stirling's power overflows before n! does, and its root does not. Its exponent is exact, unlike a logarithm.
    root = n.to(hlo.PowerOp, n * 0.5 + 0.25)
    inverse = n.of(1.0) / n
    series = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, start=1)]
    correction = (_polynomial(series, inverse * inverse) * inverse).to(hlo.ExponentialOp)
    stirling = root * (-n).to(hlo.ExponentialOp) * root * correction * math.sqrt(2 * math.pi)
    value = (n > _EXACT).choose(stirling, product)
    return (n > _LARGEST).choose(n.of(INF), value)


# ---- zeta ----

_HEAD = 12
"""So many terms are summed as they are: the reference's number, since q + 12 rounds otherwise than another sum."""


def zeta(x: Real, q: Real) -> Real:
    """The Hurwitz zeta function, the sum of (q + k) ** -x; inf at x = 1, NaN below and where it is not real."""
    whole, negative = _is_whole(x), q < 0.0
    even = _is_even(x)
    fraction = q - _floor(q)
    exponent = (x > 1.0).choose(x, 2.0)
    right = _hurwitz(exponent, (q > 0.0).choose(q, fraction))
    # Of a negative q, the terms with a negative base run over 1 - fraction, 2 - fraction, ..., -q.
    left = _hurwitz(exponent, _one_minus(fraction)) - _hurwitz(exponent, _one_minus(q))
    reflected = right + even.choose(left, -left)
    value = negative.choose(whole.choose(reflected, NAN), right)
    value = _is_pole(q).choose(even.choose(q.of(INF), NAN), value)
    value = x.equals(1.0).choose(x.of(INF), (x < 1.0).choose(x.of(NAN), value))
    return (x.is_nan | q.is_nan).choose(x.of(NAN), value)


def _hurwitz(x: Real, q: Real) -> Real:
    """zeta for x > 1 and q >= 0: terms, an integral in place of the others, and the difference between these."""
    exponent = -x
    head = q.to(hlo.PowerOp, exponent)
    for k in range(1, _HEAD):
        head = head + (q + k).to(hlo.PowerOp, exponent)
    base = q + _HEAD
    power = base.to(hlo.PowerOp, exponent)
    # Beyond 400 the power is 0, but the factors beside it would overflow.
    bounded = x.to(hlo.MinimumOp, 400.0)
    # A subnormal power has few digits: the reference's quotients, in its order, lose the same ones.
    rising, scale, square = bounded, power / base, base * base
    tail = base * power / (x - 1.0) + power * 0.5 + rising * (_BERNOULLI[0] / 2) * scale
    for k, bernoulli in enumerate(_BERNOULLI[1:], start=2):
        rising, scale = rising * (bounded + (2 * k - 3)) * (bounded + (2 * k - 2)), scale / square
        tail = tail + rising * (bernoulli / math.factorial(2 * k)) * scale
    # An infinite exponent needs no care, as powers of 1 are 1, and others 0 or infinite.
    return q.is_infinite.choose(x.of(0.0), head + tail)


# ---- the exponentially scaled Bessel function of order 1 ----

_FAR, _NEAR_TERMS, _FAR_TERMS = 24.0, 38, 20
"""Where the two series, of so many terms, have the precision of f64 both."""

_NEAR_SERIES = [1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(_NEAR_TERMS)]
_FAR_SERIES = [
    math.prod((2 * j - 1) ** 2 - 4 for j in range(1, k + 1)) / (8**k * math.factorial(k)) for k in range(_FAR_TERMS)
]


def bessel_i1e(x: Real) -> Real:
    """exp(-|x|) * I1(x)."""
    size = abs(x)
    half = size * 0.5
    near = half * _polynomial(_NEAR_SERIES, half * half) * (-size).to(hlo.ExponentialOp)
    far = _polynomial(_FAR_SERIES, x.of(1.0) / size) / (size * (2 * math.pi)).to(hlo.SqrtOp)
    return (size < _FAR).choose(near, far).with_sign(x)


SPECIAL: Mapping[type[GraphOp], Callable[..., Real]] = {
    chlo.BesselI1eOp: bessel_i1e,
    chlo.DigammaOp: digamma,
    chlo.PolygammaOp: polygamma,
    chlo.ZetaOp: zeta,
}
"""Op class -> its formula."""


def special(b: Builder, op: Any) -> Sequence[SSAValue]:
    """The op's formula in f64, rounded once to the type of its result."""
    found = SPECIAL[type(op)](*(Real(b, b.convert(v, "f64")) for v in op.operands))
    return [b.convert(found.value, element_of(op.result))]
