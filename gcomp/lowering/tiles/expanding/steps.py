"""Exact functions of floats: remainders, neighbours and whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.lowering.tiles.expanding.numbers import INF, NAN, Number, power_of_two, scale
from gcomp.lowering.tiles.expanding.table import expands

_AT_ONCE = 52
"""Bits of a quotient that one division gives."""


def _significand(x: Number) -> tuple[Number, Number]:
    """A positive f64 as a whole number of 53 bits, and the exponent of its last bit."""
    tiny = x < 2.0**-1022
    bits = tiny.choose(x * 2.0**54, x).bits
    whole = ((bits & ((1 << 52) - 1)) | x.of(2.0**52).bits).bitcast("f64")
    return whole, (bits >> 52) - tiny.choose(bits.of(54), 0) - (1023 + 52)


def _remainder(x: Number, y: Number, turns: int) -> Number:
    """x modulo y of positive f64, whose exponents differ by less than `turns` - 1 times _AT_ONCE, by long division."""
    b = x.b
    (above, exponent), (below, least) = _significand(x), _significand(y)
    left = exponent - least
    left = (left < 0).choose(left.of(0), left)

    def turn(_: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        rest, todo = (Number(b, v) for v in carried)
        shift = (todo > _AT_ONCE).choose(todo.of(_AT_ONCE), todo)
        shifted = rest * power_of_two(shift, rest.form)
        # Rounded up, the quotient is one too large.
        quotient = (shifted / below).apply("floor")
        rest = (-quotient).fma(below, shifted)
        rest = (rest < 0.0).choose(rest + below, rest)
        return [rest.value, (todo - shift).value]

    found, _ = b.loop(b.position(0), b.position(turns), 1, [above.value, left.value], turn)
    return (x < y).choose(x, scale(Number(b, found), least))


def _float_remainder(x: Number, y: Number, turns: int) -> Number:
    sizes = abs(x), abs(y)
    usual = (sizes[0] < INF) & (sizes[1] > 0.0) & (sizes[1] < INF)
    found = _remainder(usual.choose(sizes[0], 1.0), usual.choose(sizes[1], 1.0), turns)
    # Modulo an infinity, finite numbers stay.
    other = ((sizes[0] < INF) & sizes[1].equals(INF)).choose(x, NAN)
    return usual.choose(found.with_sign_of(x), other)


@expands("remainder", "f64", 0.0)
def remainder(x: Number, y: Number) -> Number:
    """What truncated division leaves."""
    return _float_remainder(x, y, (2 * 1023 + 52) // _AT_ONCE + 2)


@expands("remainder", "f32", 0.0)
def remainder_single(x: Number, y: Number) -> Number:
    """What truncated division leaves, in f64, where exponents differ less."""
    return _float_remainder(x.cast("f64"), y.cast("f64"), (2 * 127 + 23) // _AT_ONCE + 2).cast("f32")


@expands("next_after", "f32", 0.0)
@expands("next_after", "f64", 0.0)
def next_after(x: Number, y: Number) -> Number:
    """The neighbour of x towards y."""
    upwards = y > x
    bits = x.bits
    # Away from zero the bits of a number grow.
    grows = upwards.apply("ne", bits < 0)
    stepped = grows.choose(bits + 1, bits - 1)
    least = upwards.choose(bits.of(1), x.form.sign + 1)
    found = x.equals(0.0).choose(least, stepped).bitcast(x.dtype)
    return (x.is_nan | y.is_nan).choose(x.of(NAN), x.equals(y).choose(y, found))


@expands("round_nearest_afz", "f32", 0.0)
@expands("round_nearest_afz", "f64", 0.0)
def round_nearest_afz(x: Number) -> Number:
    """The nearest whole number, of two the one away from zero."""
    size = abs(x)
    whole = size.apply("floor")
    return (size - whole >= 0.5).choose(whole + 1.0, whole).with_sign_of(x)
