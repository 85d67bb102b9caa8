"""Rounding once: from a wide evaluation to an element type, to nearest even, with canonical NaNs.

ml_dtypes converts doubles to its narrow types through float32 and so rounds twice; here doubles and 64-bit
integers are first rounded to odd, which makes the second rounding the only one that counts (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from gcomp.reference.numpy.dtypes import (
    Array,
    DType,
    bits_dtype,
    float_format,
    imag_part,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    real_part,
    width_of,
)

P = ParamSpec("P")
R = TypeVar("R")

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
C128 = np.dtype(np.complex128)


def quiet(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` without NumPy's floating-point and overflow warnings: they are defined results here."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return run


def canonical_nan(result: Array) -> Array:
    """`result`, in place, with every NaN replaced by the positive quiet NaN of its type."""
    if is_complex(result.dtype):
        canonical_nan(real_part(result))
        canonical_nan(imag_part(result))
        return result
    if not float_format(result.dtype).has_nan:
        return result
    nans = np.isnan(result)
    if nans.any():
        result[nans] = np.array(np.nan, np.float32).astype(result.dtype)
    return result


@quiet
def narrow(wide: Array, dtype: DType) -> Array:
    """`wide` (float64 or complex128) rounded once, to nearest even, to the floating or complex `dtype`."""
    if is_complex(dtype):
        return canonical_nan(np.array(wide, dtype=dtype))
    if dtype in (F32, F64) or dtype == np.float16:
        return canonical_nan(np.array(wide, dtype=dtype))
    wide = np.asarray(wide, F64)
    if not float_format(dtype).has_nan:
        # What NaN becomes has the opposite sign: that of one NaN is decided here, processors differ.
        wide = np.where(np.isnan(wide), np.nan, wide)
    return canonical_nan(np.array(_to_odd_f32(wide).astype(dtype)))


def widen(x: Array) -> Array:
    """A float or complex array in double precision, contiguous; exact."""
    if is_complex(x.dtype):
        return np.ascontiguousarray(x.astype(C128)).reshape(x.shape)
    # The narrow types' NaNs have no double of the same payload that all platforms agree on; results are
    # canonical.
    via = x if x.dtype in (F32, F64) or x.dtype == np.float16 else x.astype(F32)
    return np.ascontiguousarray(via.astype(F64)).reshape(x.shape)


def integers_to_f64_odd(x: Array) -> Array:
    """64-bit integers as doubles, inexact ones rounded to odd so that a second rounding is the only one."""
    low = (x & np.array(0xFFFFFFFF, x.dtype)).astype(F64)
    high = (x >> np.array(32, x.dtype)).astype(F64) * 4294967296.0
    nearest = np.asarray(high + low)
    # high is a multiple of 2**32 and at least as large as low whenever the sum is inexact, so Fast2Sum is
    # exact.
    return _make_odd(nearest, np.asarray(low - (nearest - high)))


def _to_odd_f32(x: Array) -> Array:
    nearest = np.asarray(x.astype(F32))
    error = np.where(np.isfinite(nearest), x - nearest.astype(F64), 0.0)
    return _make_odd(nearest, error)


def _make_odd(nearest: Array, error: Array) -> Array:
    """The neighbour with an odd last bit of `nearest + error`, where error is not 0."""
    even = (nearest.view(bits_dtype(nearest.dtype)) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf).astype(nearest.dtype)
    return np.where((error != 0) & even, np.nextafter(nearest, towards), nearest)


def value_bits(x: Array) -> Array:
    """The bits of each real element as unsigned integers of the storage size, upper storage bits zero."""
    if is_bool(x.dtype):
        return x.astype(np.uint8)
    raw = np.ascontiguousarray(x).reshape(x.shape).view(bits_dtype(x.dtype))
    width = width_of(x.dtype)
    return raw if width % 8 == 0 else raw & np.array((1 << width) - 1, raw.dtype)


def from_value_bits(bits: Array, dtype: DType) -> Array:
    """The inverse of `value_bits`: real elements of `dtype` from unsigned integers of its storage size."""
    bits = np.array(bits, bits_dtype(dtype))
    if is_bool(dtype):
        return np.asarray((bits & 1) != 0)
    if is_integer(dtype) and width_of(dtype) < 8:
        return bits.astype(np.int8).astype(dtype)
    return bits.view(dtype)


def flip_sign(x: Array, *, only_where: Array | None = None) -> Array:
    """`-x` on a float array by its sign bit (everywhere, or only where asked); NaN payloads are kept."""
    form = float_format(x.dtype)
    bits = value_bits(x)
    sign = np.array(1 << (form.bits - 1), bits.dtype)
    flips = np.ones(x.shape, np.bool_) if only_where is None else only_where
    if not form.has_negative_zero:
        # The pattern "sign bit, magnitude 0" is NaN, and zero has no sign.
        flips = flips & ((bits & ~sign) != 0)
    return from_value_bits(np.where(flips, bits ^ sign, bits), x.dtype)


def sign_bit(x: Array) -> Array:
    """Whether the sign bit of each element of a float array is set."""
    form = float_format(x.dtype)
    if not form.has_sign:
        return np.zeros(x.shape, np.bool_)
    return np.asarray((value_bits(x) >> (form.bits - 1)) != 0)


@quiet
def is_nan(x: Array) -> Array:
    """Whether each element of a float or complex array is NaN (in either part)."""
    if is_float(x.dtype) and not float_format(x.dtype).has_nan:
        return np.zeros(x.shape, np.bool_)
    return np.asarray(np.isnan(x))
