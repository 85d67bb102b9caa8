"""Two's complement arithmetic on NumPy arrays without warnings, promotion or undefined behaviour.

Types narrower than a byte are evaluated in eight bits and wrapped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gcomp.reference.numpy.dtypes import Array, DType, is_bool, is_signed, width_of
from gcomp.reference.numpy.rounding import from_value_bits, quiet, value_bits

Function = Callable[..., Any]


def storage(x: Array) -> Array:
    """The same values in a dtype that NumPy computes with itself: int4 as int8."""
    width = width_of(x.dtype)
    if is_bool(x.dtype) or width >= 8:
        return x
    return x.astype(np.int8 if is_signed(x.dtype) else np.uint8)


def wrap(x: Array, dtype: DType) -> Array:
    """Integers (or integral float64 of magnitude below 2**53) modulo 2**width, as `dtype`."""
    if x.dtype.kind == "f":
        x = x.astype(np.int64)
    width = width_of(dtype)
    if width >= 8:
        return np.asarray(x.astype(dtype))
    return from_value_bits(x.astype(np.uint8) & np.uint8((1 << width) - 1), dtype)


@quiet
def wrapping(function: Function, *operands: Array) -> Array:
    """`function` of integer (or boolean) operands, wrapped to their dtype."""
    dtype = operands[0].dtype
    result = np.asarray(function(*map(storage, operands)))
    return result if result.dtype == dtype else wrap(result, dtype)


@quiet
def divide(lhs: Array, rhs: Array) -> Array:
    """Truncated quotient; -1 (all ones) for x / 0, INT_MIN for INT_MIN / -1."""
    dtype = lhs.dtype
    a, b = storage(lhs), storage(rhs)
    rest = _remainder(a, b)
    quotient = (a - rest) // _harmless(b)
    if is_signed(dtype):
        quotient = np.where(b == -1, np.negative(a), quotient)
    return wrap(np.where(b == 0, np.invert(np.zeros((), a.dtype)), quotient), dtype)


@quiet
def remainder(lhs: Array, rhs: Array) -> Array:
    """Remainder of the truncated quotient; x for x rem 0, 0 for INT_MIN rem -1."""
    a, b = storage(lhs), storage(rhs)
    return wrap(np.where(b == 0, a, _remainder(a, b)), lhs.dtype)


def _remainder(a: Array, b: Array) -> Array:
    return np.asarray(np.fmod(a, _harmless(b)))


def _harmless(divisor: Array) -> Array:
    one = np.ones((), divisor.dtype)
    unsafe = divisor == 0
    if is_signed(divisor.dtype):
        unsafe = unsafe | (divisor == -1)
    return np.where(unsafe, one, divisor)


@quiet
def power(base: Array, exponent: Array) -> Array:
    """base ** exponent modulo 2**width; negative exponents give 0 unless the base is 1 or -1."""
    dtype = base.dtype
    base, exponent = np.broadcast_arrays(storage(base), storage(exponent))
    negative = exponent < 0
    result = np.ones(base.shape, base.dtype)
    square = base
    # The bits of a negative exponent of -1 decide by its last bit alone, so two's complement needs no
    # absolute value.
    left = value_bits(exponent).astype(np.uint64)
    while left.any():
        result = np.where((left & np.uint64(1)) != 0, result * square, result)
        square = square * square
        left = left >> np.uint64(1)
    unit = (base == 1) | (base == -1) if is_signed(dtype) else base == 1
    return wrap(np.where(negative & ~unit, np.zeros((), base.dtype), result), dtype)


@quiet
def shift(lhs: Array, rhs: Array, move: Callable[[Array, Array, DType], Array]) -> Array:
    """`move(lhs, amounts, dtype)` with amounts read as unsigned and broadcast to lhs."""
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    return wrap(move(storage(lhs), value_bits(rhs).astype(np.uint64), lhs.dtype), lhs.dtype)


def shift_left(x: Array, amount: Array, dtype: DType) -> Array:
    """Zero once the amount reaches the width."""
    width = width_of(dtype)
    safe = np.minimum(amount, np.uint64(width - 1)).astype(x.dtype)
    return np.where(amount >= width, np.zeros((), x.dtype), x << safe)


def shift_right_arithmetic(x: Array, amount: Array, dtype: DType) -> Array:
    """Copies of the top bit once the amount reaches the width; the top bit of unsigned types counts too."""
    width = width_of(dtype)
    signed = x if is_signed(dtype) else _as_signed(x, width)
    safe = np.minimum(amount, np.uint64(width - 1)).astype(signed.dtype)
    return signed >> safe


def _as_signed(x: Array, width: int) -> Array:
    signed = x.view(f"int{x.dtype.itemsize * 8}")
    spare = x.dtype.itemsize * 8 - width
    return (signed << spare) >> spare if spare else signed


def shift_right_logical(x: Array, amount: Array, dtype: DType) -> Array:
    """Zero once the amount reaches the width; zeros enter signed types too."""
    width = width_of(dtype)
    bits = value_bits(wrap(x, dtype))
    safe = np.minimum(amount, np.uint64(width - 1)).astype(bits.dtype)
    return np.where(amount >= width, np.zeros((), bits.dtype), bits >> safe)


def count_leading_zeros(x: Array) -> Array:
    """Smear the highest set bit downwards, then count what is not covered."""
    width = width_of(x.dtype)
    bits = value_bits(x)
    step = 1
    while step < width:
        bits = bits | (bits >> np.array(step, bits.dtype))
        step *= 2
    return from_value_bits(width - np.bitwise_count(bits), x.dtype)
