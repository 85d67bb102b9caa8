"""Special functions of float64 arrays: the C library's where it has them, else textbook series.

erf and erfc are the C library's; erf_inv, bessel_i1e and zeta of positive arguments are within 16 ulp of float64.
lgamma, digamma and polygamma are accurate relative to their largest term: near a zero the relative error grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gcomp.reference.numpy.dtypes import Array

# The Bernoulli numbers B(2k) for k = 1 .. 12, of the asymptotic and Euler-Maclaurin series.
_BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
    854513 / 138,
    -236364091 / 2730,
)


def _each(function: Callable[[float], float], x: Array) -> Array:
    return np.array([function(v) for v in x.ravel().tolist()], np.float64).reshape(x.shape)


def erf(x: Array) -> Array:
    """The C library's erf."""
    return _each(math.erf, x)


def erfc(x: Array) -> Array:
    """The C library's erfc."""
    return _each(math.erfc, x)


def lgamma(x: Array) -> Array:
    """Python's lgamma, +inf at its poles."""

    def value(v: float) -> float:
        # Python raises at the poles, and where the value passes the largest double.
        if math.isinf(v) or v > 2.5e305 or (v <= 0 and v == math.floor(v)):
            return math.inf
        return math.lgamma(v)

    return _each(value, x)


def erf_inv(x: Array) -> Array:
    """Halley's iteration on erf, on erfc where |x| > 1/2, from Winitzki's approximation."""
    magnitude = np.abs(x)
    inside = magnitude < 1
    a = np.where(inside, magnitude, 0.5)
    log_term = np.log1p(-a) + np.log1p(a)
    c = 2 / (math.pi * 0.147) + log_term / 2
    y = np.sqrt(np.sqrt(c * c - log_term / 0.147) - c)
    # 1 - a is exact above 1/2, and there erfc keeps the relative accuracy that erf has lost.
    upper = a > 0.5
    for _ in range(3):
        residual = np.where(upper, (1 - a) - erfc(y), erf(y) - a)
        step = residual / (2 / math.sqrt(math.pi) * np.exp(-y * y))
        y = y - step / (1 + y * step)
    # Below this, erf is linear to the last bit, and the residual would be lost among subnormals.
    y = np.where(a < 1e-9, a * (math.sqrt(math.pi) / 2), y)
    y = np.where(inside, y, np.where(magnitude == 1, np.inf, np.nan))
    return np.copysign(y, x)


def digamma(x: Array) -> Array:
    """Reflection to x >= 1/2, recurrence to x >= 10, then the asymptotic series."""
    pole = (x <= 0) & (x == np.floor(x))
    reflected = x < 0.5
    y = np.where(reflected, 1 - x, x)
    shift = np.zeros_like(y)
    for _ in range(10):
        small = y < 10
        shift = shift - np.where(small, 1 / np.where(small, y, 1.0), 0.0)
        y = np.where(small, y + 1, y)
    inverse = 1 / (y * y)
    series = np.zeros_like(y)
    for k in range(len(_BERNOULLI), 0, -1):
        series = (series + _BERNOULLI[k - 1] / (2 * k)) * inverse
    value = shift + (np.log(y) - 0.5 / y - series)
    fraction = x - np.rint(x)
    value = np.where(reflected, value - math.pi / np.tan(math.pi * fraction), value)
    return np.where(pole | (x == -np.inf), np.nan, value)


def polygamma(n: Array, x: Array) -> Array:
    """(-1) ** (n + 1) * n! * zeta(n + 1, x); digamma for n = 0."""
    valid = (n >= 0) & (n == np.floor(n))
    order = np.where(valid, n, 1.0)
    sign = np.where(np.fmod(order, 2) == 0, -1.0, 1.0)
    factorial = np.array([math.gamma(min(v + 1, 172.0)) if v < 171 else math.inf for v in order.ravel().tolist()])
    value = sign * factorial.reshape(order.shape) * zeta(order + 1, x)
    value = np.where(order == 0, digamma(x), value)
    return np.where(valid, value, np.nan)


def zeta(x: Array, q: Array) -> Array:
    """Euler-Maclaurin summation for q > 0; integer x reflects negative q, where other x have no real value.

    At the poles q = 0, -1, -2, ... the value is +inf for even x and NaN for any other.
    """
    x, q = np.broadcast_arrays(x, q)
    whole = np.floor(x) == x
    even = whole & (np.fmod(x, 2) == 0)
    r = q - np.floor(q)
    negative = q < 0
    positive = _zeta_positive(x, np.where(q > 0, q, 1.0))
    if negative.any():
        # The terms with a negative base run over 1 - r, 2 - r, ..., -q.
        r = np.where(negative & (r > 0), r, 0.5)
        far = np.where(negative, 1 - q, 1.0)
        between = _zeta_positive(x, 1 - r) - _zeta_positive(x, far)
        reflected = _zeta_positive(x, r) + np.where(even, between, -between)
        positive = np.where(negative, np.where(whole, reflected, np.nan), positive)
    pole = (q <= 0) & (q == np.floor(q))
    value = np.where(pole, np.where(even, np.inf, np.nan), positive)
    value = np.where(x == 1, np.inf, np.where(x < 1, np.nan, value))
    return np.where(np.isnan(x) | np.isnan(q), np.nan, value)


def _zeta_positive(x: Array, q: Array) -> Array:
    x = np.where(x > 1, x, 2.0)
    head = np.zeros_like(q)
    for k in range(12):
        head = head + (q + k) ** -x
    base = q + 12
    power = base**-x
    tail = base * power / (x - 1) + power / 2
    rising, scale = x, power / base
    for k, bernoulli in enumerate(_BERNOULLI, start=1):
        term = bernoulli / math.factorial(2 * k) * rising * scale
        tail = tail + np.where(np.isfinite(term), term, 0.0)
        rising = rising * (x + 2 * k - 1) * (x + 2 * k)
        scale = scale / (base * base)
    total = head + tail
    # An infinite exponent leaves only bases of at most 1.
    limit = np.where(q < 1, np.inf, np.where(q == 1, 1.0, 0.0))
    return np.where(np.isposinf(x), limit, np.where(np.isposinf(q), 0.0, total))


def bessel_i1e(x: Array) -> Array:
    """The power series of I1 (all terms positive) below 30, its asymptotic series above."""
    magnitude = np.abs(x)
    small = np.where(magnitude < 30, magnitude, 1.0)
    term = small / 2
    total = term
    quarter = small * small / 4
    for k in range(1, 90):
        term = term * quarter / (k * (k + 1))
        total = total + term
    series = total * np.exp(-small)
    large = np.where(magnitude < 30, 30.0, magnitude)
    term = np.ones_like(large)
    total = term
    for k in range(1, 30):
        term = -term * (4 - (2 * k - 1) ** 2) / (8 * k * large)
        total = total + term
    asymptotic = total / np.sqrt(2 * math.pi * large)
    value = np.where(magnitude < 30, series, asymptotic)
    return np.copysign(np.where(np.isnan(x), np.nan, value), x)
