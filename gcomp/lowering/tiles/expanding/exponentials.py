"""exp and what is made of it.

x = n * log(2) + r with a whole n and |r| <= log(2) / 2: then exp(x) = 2 ** n * exp(r), and exp(r) is a polynomial.
"""

from __future__ import annotations

from gcomp.lowering.tiles.expanding.coefficients import EXP_F32, EXP_F64, TANH_F32
from gcomp.lowering.tiles.expanding.numbers import Number, Pair, Whole, polynomial, round_product
from gcomp.lowering.tiles.expanding.table import expands, in_double

LOG2_E = 1.4426950408889634
LN2 = {"f32": (0.6931471824645996, -1.904654299957768e-09), "f64": (0.6931471805599453, 2.3190468138462996e-17)}
"""log(2) as a float and what that lacks. The former times n is subtracted without an error."""
LEAST = {"f32": -104.0, "f64": -746.0}
"""Below it exp is 0."""
MOST = {"f32": 89.0, "f64": 710.0}
"""Above it exp is infinite."""


def reduce(x: Number) -> tuple[Pair, Whole]:
    """r as a pair, and n."""
    n = round_product(x, LOG2_E)
    high, low = LN2[x.dtype]
    first = (-n.value).fma(high, x)
    r = (-n.value).fma(low, first)
    return Pair(r, (-n.value).fma(low, first - r)), n


def bound_exponent(x: Number) -> Number:
    """x, or a number of the same exponential that is not so far away."""
    return x.at_most(MOST[x.dtype]).at_least(LEAST[x.dtype])


def exp_pair(r: Pair) -> Pair:
    """exp of a small r."""
    tail = (r.high * r.high).fma(polynomial(EXP_F64, r.high), r.low)
    one = Pair.fast_two_sum(r.high.of(1.0), r.high)
    return Pair.fast_two_sum(one.high, one.low + tail)


def minus_one_pair(x: Number) -> Pair:
    """(exp(x) - 1) / 2, which does not overflow where exp(x) does not."""
    r, n = reduce(x)
    small = Pair.fast_two_sum(r.high, (r.high * r.high).fma(polynomial(EXP_F64, r.high), r.low))
    power = n.power(0.5)
    return Pair.sum(power, -0.5) + small.scale(power)


# ---- f32 ----


def exp_single(r: Number) -> Number:
    """exp of a small r in f32."""
    return polynomial((1.0, 1.0, *EXP_F32), r)


def minus_one_single(r: Number) -> Number:
    """exp(r) - 1 of a small r in f32."""
    return (r * r).fma(polynomial(EXP_F32, r), r)


@expands("exponential", "f32", 1.25)
def exponential_single(x: Number) -> Number:
    """exp(x). Of what is far below, 0 is scaled: processors take long for products that underflow."""
    r, n = reduce(bound_exponent(x))
    return n.scale((x < LEAST["f32"]).choose(x.of(0.0), exp_single(r.high)))


@expands("exponential2", "f32", 1.25)
def exponential2_single(x: Number) -> Number:
    """2 ** x."""
    near = x.at_most(129.0).at_least(-151.0)
    n = round_product(near, 1.0)
    rest = near - n.value
    found = exp_single(rest.fma(LN2["f32"][0], rest * LN2["f32"][1]))
    return n.scale((x < -151.0).choose(x.of(0.0), found))


@expands("exponential_minus_one", "f32", 1.75)
def exponential_minus_one_single(x: Number) -> Number:
    """exp(x) - 1, which is computed by its half: that does not overflow where it does not."""
    r, n = reduce(x.at_most(MOST["f32"]).at_least(-20.0))
    power = n.power(0.5)
    found = power.fma(minus_one_single(r.high), power - 0.5) * 2.0
    return (abs(x) < 2.0**-26).choose(x, found)


@expands("logistic", "f32", 1.75)
def logistic_single(x: Number) -> Number:
    """1 / (1 + exp(-x)), numerator and denominator scaled by `one`, so that exp(-x) does not overflow too early."""
    near = x.at_most(87.0).at_least(LEAST["f32"])
    r, n = reduce(-near)
    far = near < -64.0
    one = far.choose(x.of(2.0**-64), 1.0)
    power = n.power(one)
    # What the sum lacks comes to the smaller part, exp(r) - 1, before that is added.
    total = one + power
    lost = one - (total - power)
    part = (x < LEAST["f32"]).choose(x.of(0.0), one)
    return part / (power.fma(minus_one_single(r.high), lost) + total)


@expands("tanh", "f32", 1.75)
def tanh_single(x: Number) -> Number:
    """A polynomial near 0, and 1 - 2 / (exp(2 |x|) + 1) beyond."""
    size = abs(x)
    square = size * size
    r, n = reduce((size + size).at_most(20.0))
    power = n.power()
    far = 1.0 - 2.0 / power.fma(minus_one_single(r.high), power + 1.0)
    near = (size * square).fma(polynomial(TANH_F32, square), size)
    return (size < 0.55).choose(near, far).with_sign_of(x)


# ---- f64 ----


@expands("exponential", "f64", 1.0)
def exponential(x: Number) -> Number:
    """exp(x)."""
    r, n = reduce(bound_exponent(x))
    return n.scale(exp_pair(r).value)


@expands("exponential2", "f64", 1.0)
def exponential2(x: Number) -> Number:
    """2 ** x."""
    near = x.at_most(1025.0).at_least(-1076.0)
    n = round_product(near, 1.0)
    return n.scale(exp_pair(Pair.constant(x, *LN2["f64"]).times(near - n.value)).value)


@expands("exponential_minus_one", "f64", 1.25)
def exponential_minus_one(x: Number) -> Number:
    """exp(x) - 1."""
    half = minus_one_pair(x.at_most(MOST["f64"]).at_least(-50.0)).value
    return (abs(x) < 2.0**-54).choose(x, half * 2.0)


@expands("logistic", "f64", 1.0)
def logistic(x: Number) -> Number:
    """1 / (1 + exp(-x)), of a negative exponent."""
    r, n = reduce(bound_exponent(-abs(x)))
    power = exp_pair(r)
    power = Pair(n.scale(power.high), n.scale(power.low))
    above = Pair.of(x.of(1.0)).choose(x >= 0.0, power)
    return (above / power.plus(1.0)).value


@expands("tanh", "f64", 1.0)
def tanh(x: Number) -> Number:
    """E / (E + 1), where E = (exp(2 |x|) - 1) / 2."""
    size = abs(x).at_most(25.0)
    half = minus_one_pair(size + size)
    return (size < 2.0**-28).choose(x, (half / half.plus(1.0)).value.with_sign_of(x))


@expands("cosh", "f64", 1.25)
def cosh(x: Number) -> Number:
    """(E + 1 / E) / 2, where E = exp(|x|)."""
    r, n = reduce(abs(x).at_most(712.0))
    half = n.scale(exp_pair(r).value, 0.5)
    return half + 0.25 / half


@expands("sinh", "f64", 1.0)
def sinh(x: Number) -> Number:
    """E + E / (2 E + 1), where E = (exp(|x|) - 1) / 2."""
    size = abs(x)
    half = minus_one_pair(size.at_most(40.0))
    near = (half + half / half.scale(2.0).plus(1.0)).value
    # Where exp(-x) counts no more, exp(x) / 2 does not overflow before its time.
    r, n = reduce(size.at_most(712.0))
    found = (size > 40.0).choose(n.scale(exp_pair(r).value, 0.5), near)
    return (size < 2.0**-28).choose(x, found.with_sign_of(x))


for _name in ("cosh", "sinh"):
    in_double(_name)
