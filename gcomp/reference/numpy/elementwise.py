"""Elementwise ops: arithmetic, logic, comparison, rounding and elementary functions.

StableHLO requires operands of equal shapes. A rank-0 operand is also accepted beside any shape, so that the
region of a `reduce` can be evaluated over many elements at once.

Floats are evaluated in double precision and rounded once. Addition, subtraction, multiplication, division and
square root are therefore correctly rounded in every type; the elementary functions are within 0.51 ulp below
f64 and within the C library's error in f64. NaN results are the canonical quiet NaN, except for the ops that
only touch the sign bit. Integers wrap around in two's complement. Every open corner: docs/guides/semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.reference.numpy import complexes, integers
from gcomp.reference.numpy.dtypes import (
    Array,
    float_format,
    imag_part,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    real_dtype,
    real_part,
)
from gcomp.reference.numpy.rounding import (
    F32,
    F64,
    canonical_nan,
    flip_sign,
    from_value_bits,
    is_nan,
    narrow,
    quiet,
    sign_bit,
    value_bits,
    widen,
)

_HUGE = 2.0**1000
"""The modulus of a complex number with a greater part may overflow."""

Function = Callable[..., Any]


def in_double(function: Function, *operands: Array) -> Array:
    """`function` of the float or complex operands in double precision, rounded once to their dtype."""
    return narrow(np.asarray(function(*map(widen, operands))), operands[0].dtype)


def _exactly_rounded(function: Function, *operands: Array) -> Array:
    # f32 and f64 arithmetic of IEEE 754 needs no detour.
    if operands[0].dtype in (F32, F64):
        return canonical_nan(np.asarray(function(*operands)))
    return in_double(function, *operands)


# Arithmetic


@quiet
def add(lhs: Array, rhs: Array) -> Array:
    """lhs + rhs; OR for booleans, wrapping for integers."""
    if is_bool(lhs.dtype):
        return np.asarray(lhs | rhs)
    if is_integer(lhs.dtype):
        return integers.wrapping(np.add, lhs, rhs)
    if is_complex(lhs.dtype):
        return canonical_nan(np.asarray(lhs + rhs))
    return _exactly_rounded(np.add, lhs, rhs)


@quiet
def subtract(lhs: Array, rhs: Array) -> Array:
    """lhs - rhs; wrapping for integers."""
    if is_integer(lhs.dtype):
        return integers.wrapping(np.subtract, lhs, rhs)
    if is_complex(lhs.dtype):
        return canonical_nan(np.asarray(lhs - rhs))
    return _exactly_rounded(np.subtract, lhs, rhs)


@quiet
def multiply(lhs: Array, rhs: Array) -> Array:
    """lhs * rhs; AND for booleans, wrapping for integers, (ac - bd, ad + bc) rounded per step for complex."""
    if is_bool(lhs.dtype):
        return np.asarray(lhs & rhs)
    if is_integer(lhs.dtype):
        return integers.wrapping(np.multiply, lhs, rhs)
    if is_complex(lhs.dtype):
        return canonical_nan(complexes.product(lhs, rhs))
    return _exactly_rounded(np.multiply, lhs, rhs)


@quiet
def divide(lhs: Array, rhs: Array) -> Array:
    """lhs / rhs; integers truncate, x / 0 is -1 (all ones if unsigned), INT_MIN / -1 is INT_MIN."""
    if is_integer(lhs.dtype):
        return integers.divide(lhs, rhs)
    if is_complex(lhs.dtype):
        return in_double(complexes.quotient, lhs, rhs)
    return _exactly_rounded(np.divide, lhs, rhs)


@quiet
def remainder(lhs: Array, rhs: Array) -> Array:
    """The remainder of truncated division, with the dividend's sign; exact. x rem 0 is x for integers."""
    if is_integer(lhs.dtype):
        return integers.remainder(lhs, rhs)
    if is_complex(lhs.dtype):
        raise UnsupportedError(
            "the remainder of complex numbers has no reference meaning", why="the specification leaves it undecided"
        )
    return in_double(np.fmod, lhs, rhs)


@quiet
def power(lhs: Array, rhs: Array) -> Array:
    """lhs ** rhs; integers wrap, and a negative exponent gives 0 unless the base is 1 or -1."""
    if is_integer(lhs.dtype):
        return integers.power(lhs, rhs)
    return in_double(_power if is_float(lhs.dtype) else np.power, lhs, rhs)


def _power(base: Array, exponent: Array) -> Array:
    """base ** exponent, exactly rounded where it is one operation of IEEE 754: libraries may be off by an ulp there."""
    found: Array = np.power(base, exponent)
    for value, function in _POWERS.items():
        where = exponent == value if value != 0.5 else (exponent == value) & (base > 0)
        if where.any():
            found = np.where(where, function(base), found)
    return found


_POWERS: dict[float, Callable[[Array], Array]] = {1.0: np.positive, 2.0: np.square, -1.0: np.reciprocal, 0.5: np.sqrt}


@quiet
def negate(operand: Array) -> Array:
    """-operand; flips the sign bit of floats (NaN too), wraps integers."""
    if is_integer(operand.dtype):
        return integers.wrapping(np.negative, operand)
    if is_complex(operand.dtype):
        return complexes.from_parts(flip_sign(real_part(operand)), flip_sign(imag_part(operand)))
    if not float_format(operand.dtype).has_sign:
        return in_double(np.negative, operand)
    return flip_sign(operand)


@quiet
def abs(operand: Array) -> Array:
    """|operand|; clears the sign bit of floats (NaN too), |INT_MIN| is INT_MIN, the modulus of complex."""
    if is_integer(operand.dtype):
        return integers.wrapping(np.abs, operand)
    if is_complex(operand.dtype):
        wide = widen(operand)
        return narrow(np.hypot(real_part(wide), imag_part(wide)), real_dtype(operand.dtype))
    if not float_format(operand.dtype).has_sign:
        return operand.copy()
    return flip_sign(operand, only_where=sign_bit(operand))


@quiet
def sign(operand: Array) -> Array:
    """-1, 0 or 1; keeps the sign of zero; z / |z| for complex, NaN in both parts if either is."""
    if is_integer(operand.dtype):
        return integers.wrapping(np.sign, operand)
    if is_complex(operand.dtype):
        return _complex_sign(operand)
    return in_double(_float_sign, operand)


def _float_sign(x: Array) -> Array:
    return np.where(x == 0, x, np.sign(x))


def _huge(z: Array) -> Array:
    """Where |z| is too large for a double, or nearly so."""
    return np.maximum(np.abs(real_part(z)), np.abs(imag_part(z))) > _HUGE


def _reduced(z: Array) -> Array:
    """z, and z / 8 where it is huge."""
    factor = np.where(_huge(z), 0.125, 1.0)
    return complexes.from_parts(real_part(z) * factor, imag_part(z) * factor)


def _complex_sign(operand: Array) -> Array:
    wide = _reduced(widen(operand))
    modulus = complexes.from_parts(np.hypot(real_part(wide), imag_part(wide)), np.zeros(wide.shape))
    result = complexes.quotient(wide, modulus)
    result = np.where(wide == 0, 0, result)
    return narrow(np.where(np.isnan(wide), np.nan * (1 + 1j), result), operand.dtype)


def maximum(lhs: Array, rhs: Array) -> Array:
    """IEEE 754-2019 maximum: NaN if either is, -0 < +0. OR for booleans, lexicographic for complex."""
    return _extremum(lhs, rhs, greater=True)


def minimum(lhs: Array, rhs: Array) -> Array:
    """IEEE 754-2019 minimum: NaN if either is, -0 < +0. AND for booleans, lexicographic for complex."""
    return _extremum(lhs, rhs, greater=False)


@quiet
def _extremum(lhs: Array, rhs: Array, *, greater: bool) -> Array:
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    if is_bool(lhs.dtype):
        return np.asarray(lhs | rhs if greater else lhs & rhs)
    if is_integer(lhs.dtype):
        return integers.wrapping(np.maximum if greater else np.minimum, lhs, rhs)
    better = np.greater if greater else np.less
    if is_complex(lhs.dtype):
        same = real_part(lhs) == real_part(rhs)
        return np.where(
            np.where(same, better(imag_part(lhs), imag_part(rhs)), better(real_part(lhs), real_part(rhs))),
            lhs,
            rhs,
        )
    result = np.where(better(lhs, rhs), lhs, rhs)
    # Equal operands differ at most in the sign of zero; the bits then decide.
    zeros = np.asarray((lhs == rhs) & (sign_bit(lhs) != sign_bit(rhs)))
    if zeros.any():
        result = np.where(zeros & (sign_bit(lhs) != np.bool_(greater)), lhs, np.where(zeros, rhs, result))
    nans = is_nan(lhs) | is_nan(rhs)
    if nans.any():
        result = np.where(nans, np.array(np.nan, np.float32).astype(lhs.dtype), result)
    return np.asarray(result)


def clamp(min: Array, operand: Array, max: Array) -> Array:
    """minimum(maximum(operand, min), max); the bounds may be of rank 0. max wins where min > max."""
    return minimum(maximum(operand, min), max)


# Comparison and selection

_COMPARISONS: dict[str, Function] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


@quiet
def compare(lhs: Array, rhs: Array, *, comparison_direction: str, compare_type: str = "NOTYPE") -> Array:
    """Compare elementwise by "EQ", "NE", "GE", "GT", "LE" or "LT"; result i1.

    `compare_type` "TOTALORDER" orders floats as -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN, for all six
    directions. Every other value is the natural comparison of the element type. Complex numbers are ordered
    by real part, then imaginary part.
    """
    test = _COMPARISONS[comparison_direction]
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    if is_complex(lhs.dtype):
        return _compare_complex(lhs, rhs, comparison_direction, compare_type)
    if compare_type == "TOTALORDER" and is_float(lhs.dtype):
        lhs, rhs = total_order_key(lhs), total_order_key(rhs)
    elif is_integer(lhs.dtype):
        lhs, rhs = integers.storage(lhs), integers.storage(rhs)
    elif is_float(lhs.dtype) and lhs.dtype not in (F32, F64):
        lhs, rhs = lhs.astype(F32), rhs.astype(F32)
    return np.asarray(test(lhs, rhs), np.bool_)


def _compare_complex(lhs: Array, rhs: Array, direction: str, compare_type: str) -> Array:
    def reals(test: str) -> Array:
        return compare(real_part(lhs), real_part(rhs), comparison_direction=test, compare_type=compare_type)

    def imags(test: str) -> Array:
        return compare(imag_part(lhs), imag_part(rhs), comparison_direction=test, compare_type=compare_type)

    if direction == "EQ":
        return np.asarray(reals("EQ") & imags("EQ"))
    if direction == "NE":
        return np.asarray(reals("NE") | imags("NE"))
    strict = {"GE": "GT", "LE": "LT"}.get(direction, direction)
    return np.asarray(reals(strict) | (reals("EQ") & imags(direction)))


def total_order_key(x: Array) -> Array:
    """Signed integers that order float elements by IEEE 754 totalOrder: one key per bit pattern."""
    form = float_format(x.dtype)
    if not form.has_negative_zero:
        # Their single NaN has no place by its bits: it is the greatest value.
        x = np.where(is_nan(x), np.array(np.nan, F32), x.astype(F32))
        form = float_format(F32)
    bits = value_bits(x)
    signed = bits.astype(np.int64)
    magnitude = signed & ((1 << (form.bits - 1)) - 1)
    return np.where(sign_bit(x), ~magnitude, magnitude)


def select(pred: Array, on_true: Array, on_false: Array) -> Array:
    """on_true where pred, else on_false; pred may be of rank 0. Moves bits."""
    return np.where(pred, on_true, on_false)


# Logic and bits


def and_(lhs: Array, rhs: Array) -> Array:
    """Logical AND of booleans, bitwise AND of integers."""
    return integers.wrapping(np.bitwise_and, lhs, rhs)


def or_(lhs: Array, rhs: Array) -> Array:
    """Logical OR of booleans, bitwise OR of integers."""
    return integers.wrapping(np.bitwise_or, lhs, rhs)


def xor(lhs: Array, rhs: Array) -> Array:
    """Logical XOR of booleans, bitwise XOR of integers."""
    return integers.wrapping(np.bitwise_xor, lhs, rhs)


def not_(operand: Array) -> Array:
    """Logical NOT of booleans, bitwise NOT of integers."""
    return integers.wrapping(np.invert, operand)


def shift_left(lhs: Array, rhs: Array) -> Array:
    """lhs << rhs, the amount read as unsigned; 0 where it is at least the width."""
    return integers.shift(lhs, rhs, integers.shift_left)


def shift_right_arithmetic(lhs: Array, rhs: Array) -> Array:
    """lhs >> rhs with the top bit repeated (of unsigned types too); all sign bits past the width."""
    return integers.shift(lhs, rhs, integers.shift_right_arithmetic)


def shift_right_logical(lhs: Array, rhs: Array) -> Array:
    """lhs >> rhs with zeros shifted in (into signed types too); 0 past the width."""
    return integers.shift(lhs, rhs, integers.shift_right_logical)


def count_leading_zeros(operand: Array) -> Array:
    """The number of zero bits above the highest set bit; the width for 0."""
    return integers.count_leading_zeros(operand)


def popcnt(operand: Array) -> Array:
    """The number of set bits of the two's complement representation."""
    return from_value_bits(np.bitwise_count(value_bits(operand)), operand.dtype)


# Complex parts


def complex(lhs: Array, rhs: Array) -> Array:
    """The complex tensor with real part lhs and imaginary part rhs. Moves bits."""
    return complexes.from_parts(*np.broadcast_arrays(lhs, rhs))


def real(operand: Array) -> Array:
    """The real part; a float is its own. Moves bits."""
    return np.array(real_part(operand)) if is_complex(operand.dtype) else operand.copy()


def imag(operand: Array) -> Array:
    """The imaginary part; +0 for floats, which is NaN in a type that has no zero. Moves bits."""
    if is_complex(operand.dtype):
        return np.array(imag_part(operand))
    return np.zeros(operand.shape, np.float32).astype(operand.dtype)


# Rounding and classification


@quiet
def is_finite(x: Array) -> Array:
    """Whether each element is neither infinite nor NaN; result i1."""
    return np.asarray(np.isfinite(widen(x)))


@quiet
def ceil(operand: Array) -> Array:
    """The least integer not below each element; keeps the sign of zero."""
    return in_double(np.ceil, operand)


@quiet
def floor(operand: Array) -> Array:
    """The greatest integer not above each element; keeps the sign of zero."""
    return in_double(np.floor, operand)


@quiet
def round_nearest_afz(operand: Array) -> Array:
    """The nearest integer, ties away from zero; keeps the sign of zero."""

    def away(x: Array) -> Array:
        whole = np.trunc(x)
        step = np.where(np.abs(x - whole) >= 0.5, np.copysign(1.0, x), 0.0)
        return np.copysign(np.where(np.isfinite(x), whole + step, x), x)

    return in_double(away, operand)


@quiet
def round_nearest_even(operand: Array) -> Array:
    """The nearest integer, ties to even; keeps the sign of zero."""
    return in_double(np.rint, operand)


# Elementary functions


@quiet
def atan2(lhs: Array, rhs: Array) -> Array:
    """The angle of the point (x = rhs, y = lhs); -i * log((x + iy) / sqrt(x*x + y*y)) for complex."""
    if is_complex(lhs.dtype):
        return in_double(_complex_angle, lhs, rhs)
    return in_double(np.arctan2, lhs, rhs)


def _complex_angle(y: Array, x: Array) -> Array:
    # By parts: a product with 1j would add a zero, of which -0 becomes 0.
    turned = complexes.from_parts(real_part(x) - imag_part(y), imag_part(x) + real_part(y))
    found = np.log(complexes.quotient(turned, np.sqrt(complexes.product(x, x) + complexes.product(y, y))))
    return complexes.from_parts(imag_part(found), -real_part(found))


@quiet
def cbrt(operand: Array) -> Array:
    """The cube root; the principal one for complex."""
    if not is_complex(operand.dtype):
        return in_double(np.cbrt, operand)

    def root(z: Array) -> Array:
        angle = np.arctan2(imag_part(z), real_part(z)) / 3
        near = _reduced(z)
        radius = np.cbrt(np.hypot(real_part(near), imag_part(near))) * np.where(_huge(z), 2.0, 1.0)
        return complexes.from_parts(radius * np.cos(angle), radius * np.sin(angle))

    return in_double(root, operand)


@quiet
def cosine(operand: Array) -> Array:
    """cos."""
    return in_double(np.cos, operand)


@quiet
def exponential(operand: Array) -> Array:
    """exp."""
    return in_double(np.exp, operand)


@quiet
def exponential_minus_one(operand: Array) -> Array:
    """exp(x) - 1, accurate near 0."""
    return in_double(complexes.expm1 if is_complex(operand.dtype) else np.expm1, operand)


@quiet
def log(operand: Array) -> Array:
    """The natural logarithm; NaN below 0, -inf at both zeros."""
    return in_double(np.log, operand)


@quiet
def log_plus_one(operand: Array) -> Array:
    """log(1 + x), accurate near 0."""

    def of_complex(z: Array) -> Array:
        return np.where(_huge(z), np.log(z), np.log1p(z))  # log1p takes |z|, which overflows

    return in_double(of_complex if is_complex(operand.dtype) else np.log1p, operand)


@quiet
def logistic(operand: Array) -> Array:
    """1 / (1 + exp(-x)), evaluated in double precision and rounded once."""

    def evaluate(x: Array) -> Array:
        return complexes.reciprocal(1 + np.exp(-x))

    return in_double(evaluate, operand)


@quiet
def rsqrt(operand: Array) -> Array:
    """1 / sqrt(x); signed infinity at signed zero."""

    def evaluate(x: Array) -> Array:
        return complexes.reciprocal(np.sqrt(x))

    return in_double(evaluate, operand)


@quiet
def sine(operand: Array) -> Array:
    """sin."""
    return in_double(np.sin, operand)


@quiet
def sqrt(operand: Array) -> Array:
    """The square root; -0 at -0, NaN below 0, the principal root for complex."""
    return in_double(np.sqrt, operand) if is_complex(operand.dtype) else _exactly_rounded(np.sqrt, operand)


@quiet
def tan(operand: Array) -> Array:
    """tan."""
    return in_double(np.tan, operand)


@quiet
def tanh(operand: Array) -> Array:
    """tanh."""
    return in_double(np.tanh, operand)
