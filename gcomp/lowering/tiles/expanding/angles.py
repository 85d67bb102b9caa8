"""Inverses of sine, cosine and tangent."""

from __future__ import annotations

from gcomp.lowering.tiles.expanding.coefficients import ASIN_F64, ATAN_F64
from gcomp.lowering.tiles.expanding.numbers import INF, NAN, Number, Pair, polynomial
from gcomp.lowering.tiles.expanding.table import expands, in_double
from gcomp.lowering.tiles.expanding.trigonometry import HALF_PI, PI

_BASES = (
    (7 / 16, 0.5, (0.4636476090008061, 2.2698777452961687e-17)),
    (11 / 16, 1.0, (0.7853981633974483, 3.061616997868383e-17)),
    (19 / 16, 1.5, (0.982793723247329, 1.3903311031230998e-17)),
)
"""From a tangent on: the tangent of an angle near it, and that angle as a pair."""
_STEEP = 39 / 16
"""From this tangent on, the angle is near pi / 2."""


def angle(y: Number, x: Number) -> Pair:
    """atan(y / x) of numbers that are not negative, and not both 0: an angle near it and atan of the difference."""
    tangent, base = x.of(0.0), Pair.of(x.of(0.0))
    for bound, value, near in _BASES:
        beyond = y >= x * bound
        tangent = beyond.choose(x.of(value), tangent)
        base = Pair.constant(x, *near).choose(beyond, base)
    above, below = Pair.product(x, -tangent).plus(y), Pair.product(y, tangent).plus(x)
    steep = y >= x * _STEEP
    above, below = Pair.of(-x).choose(steep, above), Pair.of(y).choose(steep, below)
    base = Pair.constant(x, *HALF_PI).choose(steep, base)
    t = above / below
    square = t.high * t.high
    # Of a first angle 0, the sum would not be ordered.
    rest = (t.high * square).fma(polynomial(ATAN_F64, square), t.low)
    total = Pair.sum(base.high, t.high)
    return Pair.fast_two_sum(total.high, total.low + (base.low + rest))


@expands("atan", "f64", 1.0)
def atan(x: Number) -> Number:
    """The angle whose tangent is x."""
    infinite = abs(x).equals(INF)
    found = angle(infinite.choose(x.of(1.0), abs(x)), infinite.choose(x.of(0.0), 1.0))
    return found.value.with_sign_of(x)


@expands("atan2", "f64", 1.0)
def atan2(y: Number, x: Number) -> Number:
    """The angle of the point (x, y)."""
    sizes = abs(y), abs(x)
    largest = (sizes[0] > sizes[1]).choose(*sizes)
    # Far and near points are brought closer, and infinite ones to their corners.
    scale = (largest > 2.0**1000).choose(x.of(2.0**-100), (largest < 2.0**-800).choose(x.of(2.0**200), 1.0))
    infinite = largest.equals(INF)
    above, beside = (infinite.choose(s.equals(INF).choose(x.of(1.0), 0.0), s * scale) for s in sizes)
    nowhere = largest.equals(0.0)
    found = angle(above, nowhere.choose(x.of(1.0), beside))
    opposite = (-found) + Pair.constant(x, *PI)
    found = opposite.choose(x.bits < 0, found).value.with_sign_of(y)
    return (x.is_nan | y.is_nan).choose(x.of(NAN), found)


def _arcsine(x: Number, low: Number, square: Number) -> Pair:
    """asin of x + low, at most 1/2, with the square of x."""
    return Pair.fast_two_sum(x, (x * square).fma(polynomial(ASIN_F64, square), low))


def _half_angle(size: Number) -> Pair:
    """acos(size) / 2 of 1/2 to 1, which is asin of sqrt((1 - size) / 2)."""
    square = (1.0 - size) * 0.5
    root = Pair.of(square).sqrt()
    return _arcsine(root.high, root.low, square)


@expands("asin", "f64", 1.0)
def asin(x: Number) -> Number:
    """The angle whose sine is x."""
    size = abs(x)
    near = _arcsine(size, x.of(0.0), size * size)
    far = (-_half_angle(size)).scale(2.0) + Pair.constant(x, *HALF_PI)
    return near.choose(size < 0.5, far).value.with_sign_of(x)


@expands("acos", "f64", 1.0)
def acos(x: Number) -> Number:
    """The angle whose cosine is x."""
    size = abs(x)
    near = Pair.constant(x, *HALF_PI) + (-_arcsine(x, x.of(0.0), x * x))
    far = _half_angle(size).scale(2.0)
    far = ((-far) + Pair.constant(x, *PI)).choose(x < 0.0, far)
    return near.choose(size < 0.5, far).value


for _name in ("atan", "atan2", "asin", "acos"):
    in_double(_name)
