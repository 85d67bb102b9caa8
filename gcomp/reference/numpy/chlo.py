"""CHLO's functions on real and complex numbers; those defined by series live in `special`.

As elsewhere: evaluated in double precision, rounded once, NaN canonical.
"""

from __future__ import annotations

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.reference.numpy import special
from gcomp.reference.numpy.complexes import from_parts
from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import (
    Array,
    DType,
    float_format,
    imag_part,
    is_complex,
    is_integer,
    is_signed,
    real_part,
    width_of,
)
from gcomp.reference.numpy.elementwise import add, in_double, multiply, negate, subtract, tan
from gcomp.reference.numpy.integers import storage, wrap
from gcomp.reference.numpy.rounding import (
    canonical_nan,
    from_value_bits,
    is_nan,
    quiet,
    sign_bit,
    value_bits,
    widen,
)
from gcomp.reference.numpy.sorting import top_k

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bessel_i1e",
    "conj",
    "constant",
    "constant_like",
    "cosh",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "is_inf",
    "is_neg_inf",
    "is_pos_inf",
    "lgamma",
    "mulhi",
    "next_after",
    "polygamma",
    "sinh",
    "square",
    "tan",
    "top_k",
    "zeta",
]


@quiet
def acos(operand: Array) -> Array:
    """The inverse cosine in [0, pi]; NaN outside [-1, 1]."""
    return in_double(np.arccos, operand)


@quiet
def acosh(operand: Array) -> Array:
    """The inverse hyperbolic cosine; NaN below 1."""
    return in_double(np.arccosh, operand)


@quiet
def asin(operand: Array) -> Array:
    """The inverse sine in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    return in_double(np.arcsin, operand)


@quiet
def asinh(operand: Array) -> Array:
    """The inverse hyperbolic sine."""
    return in_double(np.arcsinh, operand)


@quiet
def atan(operand: Array) -> Array:
    """The inverse tangent in [-pi/2, pi/2]."""
    return in_double(np.arctan, operand)


@quiet
def atanh(operand: Array) -> Array:
    """The inverse hyperbolic tangent; signed infinity at 1 and -1, NaN outside."""
    return in_double(np.arctanh, operand)


@quiet
def cosh(operand: Array) -> Array:
    """The hyperbolic cosine."""
    return in_double(np.cosh, operand)


@quiet
def sinh(operand: Array) -> Array:
    """The hyperbolic sine."""
    return in_double(np.sinh, operand)


@quiet
def bessel_i1e(operand: Array) -> Array:
    """exp(-|x|) * I1(x), the scaled modified Bessel function of order 1, of real numbers."""
    if is_complex(operand.dtype):
        raise UnsupportedError(
            "the Bessel function of complex numbers has no reference meaning", why="no library that gcomp knows has it"
        )
    return in_double(special.bessel_i1e, operand)


@quiet
def digamma(operand: Array) -> Array:
    """The logarithmic derivative of the gamma function; NaN at 0 and the negative integers."""
    return in_double(special.digamma, operand)


@quiet
def erf(operand: Array) -> Array:
    """The error function."""
    return in_double(special.erf, operand)


@quiet
def erfc(operand: Array) -> Array:
    """1 - erf(x), accurate where it is small."""
    return in_double(special.erfc, operand)


@quiet
def erf_inv(operand: Array) -> Array:
    """The inverse of erf; signed infinity at 1 and -1, NaN outside."""
    return in_double(special.erf_inv, operand)


@quiet
def lgamma(operand: Array) -> Array:
    """log |gamma(x)|; +inf at 0, the negative integers and both infinities."""
    return in_double(special.lgamma, operand)


@quiet
def polygamma(n: Array, x: Array) -> Array:
    """The n-th derivative of digamma; NaN unless n is a non-negative integer."""
    return in_double(special.polygamma, n, x)


@quiet
def zeta(x: Array, q: Array) -> Array:
    """The Hurwitz zeta function: the sum of (q + k) ** -x over k = 0, 1, 2, ...; inf at x = 1, NaN below."""
    return in_double(special.zeta, x, q)


def conj(operand: Array) -> Array:
    """The complex conjugate; flips a sign bit. A real number is its own."""
    if not is_complex(operand.dtype):
        return operand.copy()
    return from_parts(np.array(real_part(operand)), negate(np.array(imag_part(operand))))


@quiet
def square(operand: Array) -> Array:
    """x * x; ((re - im) * (re + im), 2 * (re * im)) for complex, each step rounded."""
    if not is_complex(operand.dtype):
        return multiply(operand, operand)
    re, im = np.array(real_part(operand)), np.array(imag_part(operand))
    cross = multiply(re, im)
    return from_parts(multiply(subtract(re, im), add(re, im)), add(cross, cross))


@quiet
def is_inf(operand: Array) -> Array:
    """Whether each element is infinite; result i1."""
    return np.asarray(np.isinf(widen(operand)))


@quiet
def is_neg_inf(operand: Array) -> Array:
    """Whether each element is -infinity; result i1."""
    return np.asarray(widen(operand) == -np.inf)


@quiet
def is_pos_inf(operand: Array) -> Array:
    """Whether each element is +infinity; result i1."""
    return np.asarray(widen(operand) == np.inf)


@quiet
def next_after(x: Array, y: Array) -> Array:
    """The neighbour of x towards y in the element type, subnormals included; y where they are equal."""
    x, y = np.broadcast_arrays(x, y)
    form = float_format(x.dtype)
    bits = value_bits(x)
    one = np.ones((), bits.dtype)
    upwards = np.asarray(widen(y) > widen(x))
    # Away from zero the bits of a sign-magnitude number grow.
    grows = upwards != sign_bit(x)
    stepped = np.where(grows, bits + one, bits - one)
    if form.has_sign:
        smallest = np.where(upwards, one, one | np.array(1 << (form.bits - 1), bits.dtype))
        stepped = np.where(widen(x) == 0, smallest, stepped)
        if not form.has_negative_zero:
            stepped = np.where(stepped == np.array(1 << (form.bits - 1), bits.dtype), 0 * one, stepped)
    result = np.where(widen(x) == widen(y), y, from_value_bits(stepped, x.dtype))
    nan = np.array(np.nan, np.float32).astype(x.dtype)
    return canonical_nan(np.where(is_nan(x) | is_nan(y), nan, result))


def mulhi(lhs: Array, rhs: Array) -> Array:
    """The upper half of the double-width product of two integers."""
    width = width_of(lhs.dtype)
    if width < 64:
        carrier = np.int64 if is_signed(lhs.dtype) else np.uint64
        product = storage(lhs).astype(carrier) * storage(rhs).astype(carrier)
        return wrap(np.asarray(product >> np.array(width, carrier)), lhs.dtype)
    high = _mulhi_u64(lhs.view(np.uint64), rhs.view(np.uint64))
    if is_signed(lhs.dtype):
        # A negative factor a is a + 2**64 when read as unsigned, which adds the other factor to the upper
        # half.
        zero = np.zeros((), np.uint64)
        high = high - np.where(lhs < 0, rhs.view(np.uint64), zero) - np.where(rhs < 0, lhs.view(np.uint64), zero)
    return np.asarray(high).view(lhs.dtype)


def _mulhi_u64(a: Array, b: Array) -> Array:
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    return np.asarray(a1 * b1 + (middle >> half) + (((middle & low) + a0 * b1) >> half))


def constant(*, value: Array) -> Array:
    """The tensor `value`."""
    return np.array(value)


def constant_like(operand: Array, *, value: object, dtype: DType | None = None) -> Array:
    """A splat of `value` in the shape of `operand`, in `dtype` (the operand's by default)."""
    dtype = np.dtype(dtype) if dtype is not None else operand.dtype
    scalar = np.asarray(value, np.int64) if is_integer(dtype) and isinstance(value, int) else np.asarray(value)
    return np.full(operand.shape, convert(scalar, dtype=dtype), dtype)
