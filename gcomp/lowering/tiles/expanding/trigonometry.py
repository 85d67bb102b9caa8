"""Sine, cosine and tangent.

x = q * pi / 2 + r with a whole q and |r| <= pi / 4. x / (pi / 2) is made of x times pieces of 2 / pi, each of as many
bits as their products hold exactly (Payne and Hanek, "Radian reduction for trigonometric functions", 1983). The first
pieces, whose products are multiples of 4, are left out: which ones depends on how large x is.
"""

from __future__ import annotations

from gcomp.lowering.tiles.expanding.coefficients import COS_F32, COS_F64, SIN_F32, SIN_F64
from gcomp.lowering.tiles.expanding.numbers import INF, Number, Pair, polynomial
from gcomp.lowering.tiles.expanding.table import expands

_BITS = 1280
_DIGITS = (
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0"
    "06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4"
    "9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d"
    "7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d"
)
"""2 / pi times 2 ** _BITS, rounded down."""
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
PI = (3.141592653589793, 1.2246467991473532e-16)
"""As sums of two doubles."""


def pieces(width: int, count: int) -> list[float]:
    """2 / pi as a sum of numbers of some bits; the k-th is multiplied by 2 ** (width * k), so that it is below 1."""
    whole = int(_DIGITS, 16)
    return [(whole >> (_BITS - width * (k + 1)) & ((1 << width) - 1)) * 2.0**-width for k in range(count)]


def first_products(size: Number, width: int, bits: int, last: int, count: int) -> list[Number]:
    """Numbers whose products with pieces of 2 / pi add up to size / (pi / 2), but for multiples of 4.

    `bits` are those of the significand of `size`, whose exponent is at most `last`. Gives `size` scaled down by the
    pieces that are left out, and the `count` pieces after these, each with its own scale.
    """
    # A product with the first piece is a multiple of 4 from this power of two on, with the next ones later.
    first = bits + width + 1
    bounds = [size.of(2.0**exponent) for exponent in range(first, last + 1, width)]
    factors = [size.of(2.0 ** (-width * k)) for k in range(len(bounds) + 1)]
    found = [size.of(piece) for piece in pieces(width, len(bounds) + count)]
    step = 1 << (len(bounds).bit_length() - 1)
    bounds += [size.of(INF)] * (2 * step - 1 - len(bounds))
    while step:
        # How many are left out is found by halving, and with it what comes after these in each list.
        beyond = size >= bounds[step - 1]
        bounds, factors, found = (
            [beyond.choose(values[i + step], v) if i + step < len(values) else v
             for i, v in enumerate(values[: step - 1 + kept])]
            for values, kept in ((bounds, 0), (factors, 1), (found, count))
        )  # fmt: skip
        step //= 2
    return [size * factors[0], *(v * 2.0 ** (-width * k) for k, v in enumerate(found))]


def _modulo_4(x: Number) -> Number:
    return (x * 0.25).nearest().fma(-4.0, x)


def _quadrant(q: Number) -> Number:
    """A small whole number as an integer."""
    return (q + q.form.magic).bits


def _apply_sign(found: Number, quadrant: Number, sign: Number | int = 0) -> Number:
    """A sine with the sign that its quadrant gives it, turned by another sign."""
    return (found.bits ^ ((quadrant & 2) << 62) ^ sign).bitcast(found.dtype)


# ---- f32, in f64 ----


def reduce_single(size: Number) -> tuple[Number, Number]:
    """r and q of an f32 that is not negative, as f64; q modulo 4 as an integer."""
    scaled, *found = first_products(size, 28, 24, 127, 4)
    products = [scaled * piece for piece in found]
    first, second = _modulo_4(products[0]), _modulo_4(products[1])
    q = (first + second).nearest()
    fraction = ((first - q) + second) + products[2] + products[3]
    return fraction * HALF_PI[0], _quadrant(q)


def _sine_single(r: Number) -> Number:
    square = r * r
    return (r * square).fma(polynomial(SIN_F32, square), r)


def _cosine_single(r: Number) -> Number:
    square = r * r
    return (square * square).fma(polynomial(COS_F32, square), square.fma(-0.5, 1.0))


@expands("sine", "f32", 0.51)
def sine_single(x: Number) -> Number:
    """sin(x)."""
    wide = x.cast("f64")
    r, q = reduce_single(abs(wide))
    found = (q & 1).equals(0).choose(_sine_single(r), _cosine_single(r))
    return _apply_sign(found, q, wide.bits & wide.form.sign).cast("f32")


@expands("cosine", "f32", 0.51)
def cosine_single(x: Number) -> Number:
    """cos(x)."""
    r, q = reduce_single(abs(x.cast("f64")))
    found = (q & 1).equals(0).choose(_cosine_single(r), _sine_single(r))
    return _apply_sign(found, q + 1).cast("f32")


@expands("tan", "f32", 0.51)
def tan_single(x: Number) -> Number:
    """sin(x) / cos(x), or what that is a quarter of a turn later."""
    wide = x.cast("f64")
    r, q = reduce_single(abs(wide))
    sine, cosine = _sine_single(r), _cosine_single(r)
    even = (q & 1).equals(0)
    found = even.choose(sine, -cosine) / even.choose(cosine, sine)
    return (found.bits ^ (wide.bits & wide.form.sign)).bitcast("f64").cast("f32")


# ---- f64 ----


def reduce(size: Number) -> tuple[Pair, Number]:
    """r and q of an f64 that is not negative; q modulo 4 as an integer."""
    scaled, *found = first_products(size, 53, 53, 1023, 5)
    products = [Pair.product(scaled, piece) for piece in found]
    highs = [_modulo_4(products[0].high), _modulo_4(products[1].high)]
    low = _modulo_4(products[0].low)
    q = (((highs[0] + low) + highs[1]) + products[1].low + products[2].high).nearest()
    # What is added while the sum is large is added exactly.
    total = Pair.sum(highs[0], -q).plus(low) + Pair.sum(highs[1], products[1].low)
    total = (total + products[2] + products[3]).plus(products[4].high)
    r = total * Pair.constant(size, *HALF_PI)
    near = size < 0.78125
    return Pair.of(size).choose(near, r), _quadrant(near.choose(size.of(0.0), q))


def sine_pair(r: Pair) -> Pair:
    """sin of a small pair."""
    square = r.high * r.high
    tail = (r.high * square).fma(polynomial(SIN_F64, square), r.low * square.fma(-0.5, 1.0))
    return Pair.fast_two_sum(r.high, tail)


def cosine_pair(r: Pair) -> Pair:
    """cos of a small pair."""
    square = r.high * r.high
    half = square * -0.5
    lost = r.high.fma(r.high, -square) * -0.5
    head = Pair.fast_two_sum(half.of(1.0), half)
    tail = (square * square).fma(polynomial(COS_F64, square), lost - r.high * r.low)
    return Pair.fast_two_sum(head.high, head.low + tail)


@expands("sine", "f64", 1.0)
def sine(x: Number) -> Number:
    """sin(x)."""
    r, q = reduce(abs(x))
    found = sine_pair(r).choose((q & 1).equals(0), cosine_pair(r)).value
    return _apply_sign(found, q, x.bits & x.form.sign)


@expands("cosine", "f64", 1.0)
def cosine(x: Number) -> Number:
    """cos(x)."""
    r, q = reduce(abs(x))
    return _apply_sign(cosine_pair(r).choose((q & 1).equals(0), sine_pair(r)).value, q + 1)


@expands("tan", "f64", 1.0)
def tan(x: Number) -> Number:
    """sin(x) / cos(x), or what that is a quarter of a turn later."""
    r, q = reduce(abs(x))
    sine, cosine = sine_pair(r), cosine_pair(r)
    even = (q & 1).equals(0)
    found = (sine.choose(even, -cosine) / cosine.choose(even, sine)).value
    return (found.bits ^ (x.bits & x.form.sign)).bitcast("f64")
