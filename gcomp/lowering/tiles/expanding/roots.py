"""Roots that are no operation of IEEE 754."""

from __future__ import annotations

from gcomp.lowering.tiles.expanding.coefficients import CBRT
from gcomp.lowering.tiles.expanding.logarithms import exponent_of
from gcomp.lowering.tiles.expanding.numbers import INF, Number, Pair, polynomial, power_of_two, round_product
from gcomp.lowering.tiles.expanding.table import expands, in_double


@expands("rsqrt", "f32", 1.5)
@expands("rsqrt", "f64", 1.5)
def rsqrt(x: Number) -> Number:
    """1 / sqrt(x), each rounded."""
    return 1.0 / x.sqrt()


@expands("cbrt", "f64", 0.51)
def cbrt(x: Number) -> Number:
    """Of 2 ** (3 * q) * t with t near 1: 2 ** q times a root that begins with a polynomial, then is made exact."""
    size = abs(x)
    tiny = size < 2.0**-1022
    normal = tiny.choose(size * 2.0**54, size)
    k = exponent_of(normal)
    q = round_product(k.cast("f64"), 1 / 3).bits
    t = (normal.bits - ((q + q + q) << 52)).bitcast("f64")
    y = polynomial(CBRT, t)
    cube = y * y * y
    y = y * (cube + t + t) / (cube + cube + t)
    square = Pair.product(y, y)
    cubed = square.times(y)
    y = y - ((cubed.high - t) + cubed.low) / (square.high * 3.0)
    found = y * power_of_two(q, x.form) * tiny.choose(x.of(2.0**-18), 1.0)
    return ((size > 0.0) & (size < INF)).choose(found.with_sign_of(x), x)


in_double("cbrt")
