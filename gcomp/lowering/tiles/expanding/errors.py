"""erf and its relatives."""

from __future__ import annotations

from gcomp.lowering.tiles.expanding.coefficients import ERF_F32, ERF_F64, ERF_INV, ERF_INV_FAR, ERF_TAIL_F32, ERFC_F64
from gcomp.lowering.tiles.expanding.exponentials import (
    bound_exponent,
    exp_pair,
    exponential,
    minus_one_single,
    reduce,
)
from gcomp.lowering.tiles.expanding.logarithms import log_double
from gcomp.lowering.tiles.expanding.numbers import INF, NAN, Number, Pair, polynomial
from gcomp.lowering.tiles.expanding.table import expands, in_double

_FAR = 28.0
"""From here on erfc is 0 in f64."""
_INVERSE = (0.886226925452758, -3.8332932499128993e-17)
"""sqrt(pi) / 2 as a pair: erf_inv grows with it at 0."""


@expands("erf", "f32", 1.5)
def erf_single(x: Number) -> Number:
    """x + x * P(x * x) near 0, and 1 - exp(-P(|x|)) beyond."""
    size = abs(x)
    square = x * x
    near = x.fma(polynomial(ERF_F32, square), x)
    exponent = -polynomial(ERF_TAIL_F32, size.at_most(4.0))
    r, n = reduce(exponent)
    power = n.power()
    far = (-power).fma(minus_one_single(r.high), 1.0 - power)
    return (size < 0.93).choose(near, far.with_sign_of(x))


def erfc_positive(x: Number) -> Pair:
    """erfc of x >= 0, as exp(-x * x) * P((x - 4) / (x + 4)) / (1 + 2 x)."""
    near = x.at_most(_FAR)
    t = (near - 4.0) / (near + 4.0)
    rest = t * polynomial(ERFC_F64[1:], t)
    factor = Pair.fast_two_sum(x.of(ERFC_F64[0]), rest) / Pair.sum(x.of(1.0), near + near)
    square = Pair.product(near, near)
    r, n = reduce(bound_exponent(-square.high))
    power = exp_pair(Pair.sum(r.high, r.low - square.low))
    found = power * factor
    return Pair(n.scale(found.high), n.scale(found.low))


def erf_near(x: Number) -> Number:
    """erf of |x| < 1."""
    return x.fma(polynomial(ERF_F64, x * x), x)


@expands("erf", "f64", 1.0)
def erf(x: Number) -> Number:
    """A polynomial near 0, and 1 - erfc(|x|) beyond."""
    size = abs(x)
    far = (-erfc_positive(size)).plus(1.0).value
    return (size < 1.0).choose(erf_near(x), far.with_sign_of(x))


@expands("erfc", "f64", 2.0)
def erfc(x: Number) -> Number:
    """1 - erf(x)."""
    size = abs(x)
    found = erfc_positive(size)
    far = (x < 0.0).choose((-found).plus(2.0).value, found.value)
    return (size < 0.25).choose(1.0 - erf_near(x), far)


@expands("erf_inv", "f64", 1.5)
def erf_inv(x: Number) -> Number:
    """Halley's step on erf, or on erfc beyond 1/2, from a polynomial in -log(1 - x * x) or its root."""
    size = abs(x)
    inside = size < 1.0
    a = inside.choose(size, 0.75)
    w = -log_double((1.0 - a) * (a + 1.0))
    near, far = polynomial(ERF_INV, w.at_most(5.0)), polynomial(ERF_INV_FAR, w.at_least(5.0).sqrt())
    y = a * (w < 5.0).choose(near, far)
    # 1 - a is exact there, and erfc keeps the digits that erf has lost.
    found = erfc_positive(y)
    above = ((1.0 - a) - found.high) - found.low
    below = y.fma(polynomial(ERF_F64, y * y), y - a)
    wrong = (a > 0.5).choose(above, below)
    step = wrong * exponential(y * y) * _INVERSE[0]
    y = y - step / y.fma(step, 1.0)
    tiny = size.fma(_INVERSE[0], size * _INVERSE[1])
    y = (size < 2.0**-29).choose(tiny, y)
    other = size.equals(1.0).choose(x.of(INF), NAN)
    return inside.choose(y, other).with_sign_of(x)


for _name in ("erfc", "erf_inv"):
    in_double(_name)
