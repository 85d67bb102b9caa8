"""The logarithm of the gamma function."""

from __future__ import annotations

from gcomp.lowering.tiles.expanding.coefficients import LGAMMA, STIRLING
from gcomp.lowering.tiles.expanding.logarithms import log, log_pair
from gcomp.lowering.tiles.expanding.numbers import INF, Number, Pair, polynomial
from gcomp.lowering.tiles.expanding.table import expands, in_double
from gcomp.lowering.tiles.expanding.trigonometry import PI, cosine_pair, sine_pair

_STIRLING = 0.4189385332046727
"""(log(2 * pi) - 1) / 2."""
_FROM = 8.0
"""Stirling's series is used from here on."""


def _small(z: Number) -> Number:
    """Of 0 < z < 8: a polynomial between 1 and 3, times what the recurrence takes beyond."""
    # gamma(z) = (z - 1) * gamma(z - 1) and gamma(z + 1) / z
    low = z < 1.0
    rest = low.choose(z - 1.0, z - 2.0)
    factor = Pair.of(low.choose(z, 1.0))
    for _ in range(int(_FROM) - 3):
        beyond = rest >= 1.0
        factor = factor.times(beyond.choose(rest + 1.0, 1.0))
        rest = beyond.choose(rest - 1.0, rest)
    found = Pair.product(rest, rest + 1.0).times(polynomial(LGAMMA, rest))
    extra = log_pair(factor)
    return (found + (-extra).choose(low, extra)).value


def _large(z: Number) -> Number:
    """Stirling's formula, of z >= 8."""
    inverse = 1.0 / z
    series = inverse * polynomial(STIRLING, inverse * inverse)
    bounded = z.at_most(1e300)
    found = log_pair(Pair.of(bounded)).plus(-1.0).times(bounded - 0.5).plus(_STIRLING).plus(series).value
    # Beyond, only the product is left, which may be infinite.
    return (z > 1e300).choose((log(z) - 1.0) * z, found)


@expands("lgamma", "f64", 2.0)
def lgamma(x: Number) -> Number:
    """log |gamma(x)|; of negative x by gamma(x) * gamma(-x) = -pi / (x * sin(pi * x))."""
    size = abs(x)
    z = (size < INF).choose(size, 1.0).at_least(2.0**-60)
    positive = (z < _FROM).choose(_small(z.at_most(_FROM)), _large(z.at_least(_FROM)))
    distance = abs(z - z.nearest())
    pole = distance.equals(0.0)
    near = distance < 0.25
    r = Pair.constant(x, *PI).times(near.choose(pole.choose(x.of(0.25), distance), 0.5 - distance))
    sine = sine_pair(r).choose(near, cosine_pair(r))
    both = log_pair(Pair.constant(x, *PI) / sine.times(z.at_most(2.0**60)))
    negative = pole.choose(x.of(INF), both.plus(-positive).value)
    found = (x < 0.0).choose(negative, positive)
    found = (size < 2.0**-60).choose(-log(size), found)
    return size.equals(INF).choose(size, x.is_nan.choose(x, found))


in_double("lgamma")
