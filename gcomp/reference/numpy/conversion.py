"""Changes of element type: by value, by bits, and to a reduced precision and back."""

from __future__ import annotations

import numpy as np

from gcomp.reference.numpy import integers
from gcomp.reference.numpy.complexes import from_parts
from gcomp.reference.numpy.dtypes import (
    Array,
    DType,
    float_format,
    imag_part,
    integer_limits,
    is_bool,
    is_complex,
    is_float,
    real_dtype,
    real_part,
    width_of,
)
from gcomp.reference.numpy.rounding import (
    F32,
    F64,
    canonical_nan,
    from_value_bits,
    integers_to_f64_odd,
    is_nan,
    narrow,
    quiet,
    value_bits,
    widen,
)


@quiet
def convert(operand: Array, *, dtype: DType) -> Array:
    """`operand` by value in `dtype`, rounded once to nearest even.

    Integers wrap into narrower integers. Floats truncate towards zero into integers, saturate, and NaN gives
    0. Anything but zero is true (NaN too). Complex to real drops the imaginary part, real to complex has +0
    there. Converting to the operand's own dtype moves bits; any other conversion makes NaN canonical.
    """
    source, dtype = operand.dtype, np.dtype(dtype)
    if source == dtype:
        return operand.copy()
    if is_complex(dtype):
        real = convert(real_part(operand) if is_complex(source) else operand, dtype=real_dtype(dtype))
        imag = convert(imag_part(operand), dtype=real_dtype(dtype)) if is_complex(source) else np.zeros_like(real)
        return from_parts(real, imag)
    if is_complex(source):
        return convert(np.array(real_part(operand)), dtype=dtype)
    if is_bool(dtype):
        return np.asarray((widen(operand) if is_float(source) else integers.storage(operand)) != 0)
    if is_float(dtype):
        return _to_float(operand, dtype)
    return _float_to_integer(operand, dtype) if is_float(source) else integers.wrap(operand, dtype)


def _to_float(operand: Array, dtype: DType) -> Array:
    if is_float(operand.dtype):
        return narrow(widen(operand), dtype)
    values = integers.storage(operand)
    if width_of(operand.dtype) < 64 or dtype in (F32, F64):
        # At most 32 bits are exact in a double, and C converts 64 bits to float and double with one rounding.
        return np.asarray(values.astype(dtype)) if dtype in (F32, F64) else narrow(values.astype(F64), dtype)
    return narrow(integers_to_f64_odd(values), dtype)


def _float_to_integer(operand: Array, dtype: DType) -> Array:
    low, high = integer_limits(dtype)
    whole = np.trunc(widen(operand))
    # float(high) may round up to high + 1, and float(low) is exact: so the two tests.
    inside = np.where((whole >= low) & (whole < float(high + 1)), whole, 0.0)
    carrier = np.uint64 if low == 0 else np.int64
    exact = np.where(whole >= float(high + 1), np.array(high, carrier), inside.astype(carrier))
    return integers.wrap(np.where(whole < low, np.array(low, carrier), exact), dtype)


def bitcast_convert(operand: Array, *, dtype: DType) -> Array:
    """The bits of `operand` read as `dtype`; shape [..., k] <-> [...] where widths differ by a factor of k.

    The first of several narrow elements holds the least significant bits. i1 is one bit, int4 four.
    """
    dtype = np.dtype(dtype)
    old, new = width_of(operand.dtype), width_of(dtype)
    if min(old, new) < 8:
        return _bitcast_narrow(operand, dtype, old, new)
    # NumPy's views split and join the last dimension in memory order, which is little-endian.
    raw = np.ascontiguousarray(operand).reshape(operand.shape)
    if new < old:
        return np.array(raw[..., None].view(dtype))
    return np.array(raw.view(dtype)[..., 0] if new > old else raw.view(dtype))


def _bitcast_narrow(operand: Array, dtype: DType, old: int, new: int) -> Array:
    if old == new:
        return from_value_bits(value_bits(operand), dtype)
    bits = _to_bit_array(operand)
    shape = (*operand.shape, old // new, new) if new < old else (*operand.shape[:-1], new)
    return _from_bit_array(bits.reshape(shape), dtype)


def _to_bit_array(operand: Array) -> Array:
    shifts = np.arange(width_of(operand.dtype), dtype=np.uint64)
    return ((value_bits(operand).astype(np.uint64)[..., None] >> shifts) & np.uint64(1)).astype(np.uint8)


def _from_bit_array(bits: Array, dtype: DType) -> Array:
    shifts = np.arange(width_of(dtype), dtype=np.uint64)
    words = np.bitwise_or.reduce(bits.astype(np.uint64) << shifts, axis=-1)
    return from_value_bits(np.asarray(words), dtype)


@quiet
def reduce_precision(operand: Array, *, exponent_bits: int, mantissa_bits: int) -> Array:
    """`operand` rounded to a float format of that many exponent and mantissa bits, in its own dtype.

    Rounds to nearest even, then overflows to infinity and flushes what is below the smallest normal to signed
    zero. NaN is kept; with no mantissa bits it becomes +infinity. Formats without infinity go through f32.
    """
    form = float_format(operand.dtype)
    if not form.is_ieee:
        wide = reduce_precision(operand.astype(F32), exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
        return canonical_nan(np.array(wide.astype(operand.dtype)))
    bits = value_bits(operand).astype(np.uint64)
    dropped = form.mantissa_bits - mantissa_bits
    if dropped > 0:
        last = (bits >> np.uint64(dropped)) & np.uint64(1)
        bits = bits + last + np.uint64((1 << (dropped - 1)) - 1)
        bits = bits & ~np.uint64((1 << dropped) - 1)
    if exponent_bits < form.exponent_bits:
        bits = _limit_exponent(bits, form.bits, form.exponent_bits, form.mantissa_bits, exponent_bits)
    reduced = from_value_bits(bits.astype(value_bits(operand).dtype), operand.dtype)
    return np.where(is_nan(operand), operand, reduced)


def _limit_exponent(bits: Array, width: int, exponent_bits: int, mantissa_bits: int, target: int) -> Array:
    bias, new_bias = (1 << (exponent_bits - 1)) - 1, (1 << (target - 1)) - 1
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    exponent = bits & np.uint64(infinity)
    zero = bits & np.uint64(1 << (width - 1))
    overflows = exponent > np.uint64((bias + new_bias) << mantissa_bits)
    underflows = exponent <= np.uint64((bias - new_bias) << mantissa_bits)
    return np.where(underflows, zero, np.where(overflows, zero | np.uint64(infinity), bits))
