"""log and what is made of it, powers too.

x = 2 ** k * m with m between sqrt(1/2) and sqrt(2). Of f32, log(m) is a polynomial in m - 1; of f64, the series of
log((1 + s) / (1 - s)) with s = (m - 1) / (m + 1).
"""

from __future__ import annotations

from collections.abc import Callable

from gcomp.lowering.tiles.expanding.coefficients import LOG_F32, LOG_F64, LOG_PAIR_F64
from gcomp.lowering.tiles.expanding.exponentials import LN2, exp_pair, exponential, reduce
from gcomp.lowering.tiles.expanding.numbers import INF, NAN, Number, Pair, polynomial, scale
from gcomp.lowering.tiles.expanding.table import expands, in_double

_ROOT_HALF = 0.7071067811865476
_TINY = {"f32": (2.0**-126, 2.0**25, 25.0), "f64": (2.0**-1022, 2.0**54, 54.0)}
"""Type -> its smallest normal number, and a power of two that makes normal numbers of smaller ones."""


def exponent_of(x: Number) -> Number:
    """k as an integer, of a normal x."""
    return (x.bits - x.of(_ROOT_HALF).bits) >> x.form.mantissa


def split(x: Number) -> tuple[Number, Number]:
    """m, and k as a float."""
    least, factor, shift = _TINY[x.dtype]
    tiny = x < least
    normal = tiny.choose(x * factor, x)
    k = exponent_of(normal)
    m = (normal.bits - (k << x.form.mantissa)).bitcast(x.dtype)
    return m, k.cast(x.dtype) - tiny.choose(x.of(shift), 0.0)


def with_limits(x: Number, found: Number) -> Number:
    """Extend a logarithm of positive finite numbers to all: -inf at 0, inf at inf, NaN below 0 and of NaN."""
    other = x.equals(0.0).choose(x.of(-INF), (x < 0.0).choose(x.of(NAN), x))
    return ((x > 0.0) & (x < INF)).choose(found, other)


def log_pair(x: Pair) -> Pair:
    """log of a positive, normal pair."""
    k = exponent_of(x.high)
    high = (x.high.bits - (k << x.high.form.mantissa)).bitcast(x.high.dtype)
    return _log_pair(high, scale(x.low, -k), k.cast(x.high.dtype))


def _log_pair(high: Number, low: Number, k: Number) -> Pair:
    f = Pair.sum(high - 1.0, low)
    s = f / Pair.sum(high, 1.0).plus(low)
    square = s * s
    # 2 s + 2/3 s ** 3 + s ** 5 * (...)
    term = Pair.constant(high, 2 / 3, 3.700743415417188e-17).plus(square.high * polynomial(LOG_PAIR_F64, square.high))
    rest = square * s * term
    return Pair.constant(high, *LN2["f64"]).times(k) + (s.scale(2.0) + rest)


def log_double(x: Number) -> Number:
    """log of a positive number in f64, to a few units in the last place."""
    m, k = split(x)
    f = m - 1.0
    s = f / (f + 2.0)
    square = s * s
    found = (s * square).fma(polynomial(LOG_F64, square), k * LN2["f64"][1]) + (s + s)
    return k.fma(LN2["f64"][0], found)


def _log_single(f: Number, k: Number) -> Number:
    """k * log(2) + log(1 + f) in f32."""
    square = f * f
    low = square.fma(f * polynomial(LOG_F32, f), k * LN2["f32"][1])
    return k.fma(LN2["f32"][0], square.fma(-0.5, low) + f)


@expands("log", "f32", 1.0)
def log_single(x: Number) -> Number:
    """log(x)."""
    m, k = split(x)
    return with_limits(x, _log_single(m - 1.0, k))


@expands("log_plus_one", "f32", 1.5)
def log_plus_one_single(x: Number) -> Number:
    """log(1 + x), where what the sum rounds away is added to the mantissa's distance from 1."""
    total = Pair.sum(x.of(1.0), x)
    k = exponent_of(total.high)
    m = (total.high.bits - (k << 23)).bitcast("f32")
    found = _log_single((m - 1.0) + scale(total.low, -k), k.cast("f32"))
    return (abs(x) < 2.0**-25).choose(x, with_limits(total.high, found))


@expands("log", "f64", 0.51)
def log(x: Number) -> Number:
    """log(x)."""
    m, k = split(x)
    return with_limits(x, _log_pair(m, x.of(0.0), k).value)


@expands("log_plus_one", "f64", 0.51)
def log_plus_one(x: Number) -> Number:
    """log(1 + x)."""
    total = Pair.sum(x.of(1.0), x)
    return (abs(x) < 2.0**-54).choose(x, with_limits(total.high, log_pair(total).value))


# ---- powers ----


@expands("power", "f32", 1.0)
def power_single(x: Number, y: Number) -> Number:
    """x ** y."""

    def magnitude(size: Number, exponent: Number) -> Number:
        product = (exponent * log_double(size)).at_most(800.0).at_least(-800.0)
        return exponential(product)

    return _power(x.cast("f64"), y.cast("f64"), magnitude).cast("f32")


@expands("power", "f64", 1.0)
def power(x: Number, y: Number) -> Number:
    """x ** y."""

    def magnitude(size: Number, exponent: Number) -> Number:
        m, k = split(size)
        # Beyond, only the exponent's sign counts, as no logarithm but that of 1 is so small.
        product = _log_pair(m, size.of(0.0), k).times(exponent.at_most(1e300).at_least(-1e300))
        far = abs(product.high) > 746.0
        high = far.choose(product.high.at_most(746.0).at_least(-746.0), product.high)
        r, n = reduce(high)
        low = r.low + far.choose(high.of(0.0), product.low)
        return n.scale(exp_pair(Pair.sum(r.high, low)).value)

    return _power(x, y, magnitude)


def _power(x: Number, y: Number, magnitude: Callable[[Number, Number], Number]) -> Number:
    """x ** y as C has it, of the powers of positive numbers."""
    size = abs(x)
    found = magnitude(size, y)
    # Powers of 0 and of infinities, which are each other's inverses.
    shrinks = size.equals(0.0) ^ (y < 0.0)
    found = (size.equals(0.0) | size.equals(INF)).choose(shrinks.choose(x.of(0.0), INF), found)
    found = size.equals(1.0).choose(x.of(1.0), found)
    half = y * 0.5
    whole = y.equals(y.apply("floor"))
    odd = whole & ~half.equals(half.apply("floor"))
    negative = (x.bits < 0) & ~x.is_nan
    found = (negative & odd).choose(-found, found)
    wrong = ((x < 0.0) & (x > -INF) & ~whole) | x.is_nan | y.is_nan
    found = wrong.choose(x.of(NAN), found)
    return (y.equals(0.0) | x.equals(1.0)).choose(x.of(1.0), found)


# ---- inverses of hyperbolic functions ----


@expands("asinh", "f64", 0.51)
def asinh(x: Number) -> Number:
    """log(|x| + sqrt(x * x + 1)), with the sign of x."""
    size = abs(x)
    large = size > 2.0**500
    near = large.choose(size.of(1.0), size)
    found = log_pair(Pair.product(near, near).plus(1.0).sqrt().plus(near))
    found = _twice(size).choose(large, found).value
    return ((size > 2.0**-27) & (size < INF)).choose(found.with_sign_of(x), x)


@expands("acosh", "f64", 0.51)
def acosh(x: Number) -> Number:
    """log(x + sqrt(x * x - 1)); NaN below 1."""
    large = x > 2.0**500
    near = ((x > 1.0) & ~large).choose(x, 2.0)
    found = log_pair(Pair.product(near, near).plus(-1.0).sqrt().plus(near))
    found = _twice(x).choose(large, found).value
    return ((x > 1.0) & (x < INF)).choose(found, x.equals(1.0).choose(x.of(0.0), (x < 1.0).choose(x.of(NAN), x)))


def _twice(x: Number) -> Pair:
    """log(2 * x)."""
    m, k = split(x)
    return _log_pair(m, x.of(0.0), k + 1.0)


@expands("atanh", "f64", 0.51)
def atanh(x: Number) -> Number:
    """log((1 + |x|) / (1 - |x|)) / 2, with the sign of x; NaN beyond 1."""
    size = abs(x)
    near = (size < 1.0).choose(size, 0.5)
    found = log_pair(Pair.sum(x.of(1.0), near) / Pair.sum(x.of(1.0), -near)).value * 0.5
    other = size.equals(1.0).choose(x.of(INF), NAN)
    return (size < 2.0**-27).choose(x, (size < 1.0).choose(found, other).with_sign_of(x))


for _name in ("asinh", "acosh", "atanh"):
    in_double(_name)
