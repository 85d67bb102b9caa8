"""What the reference needs to know of element types: float formats, integer limits, the shared text table.

Sources: StableHLO specification, "Types"; IEEE 754-2019; the OCP FP8 and MX papers it cites.
"""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gcomp.dtypes import DTYPES, TEXTS, DType, bit_width, dtype_of, finfo, text_of
from gcomp.dtypes import is_complex as text_is_complex
from gcomp.dtypes import is_float as text_is_float
from gcomp.dtypes import is_integer as text_is_integer
from gcomp.records import record

__all__ = [
    "DTYPES",
    "TEXTS",
    "Array",
    "DType",
    "FloatFormat",
    "bits_dtype",
    "dtype_of",
    "float_format",
    "imag_part",
    "integer_limits",
    "is_bool",
    "is_complex",
    "is_float",
    "is_integer",
    "is_signed",
    "is_unsigned",
    "real_dtype",
    "real_part",
    "text_of",
    "width_of",
]

Array = NDArray[Any]


@record
class FloatFormat:
    """The encoding of a floating-point type.

    `exponent_bits` and `mantissa_bits` are the widths of the stored fields; `max`, `tiny` (smallest normal)
    and `smallest` (smallest positive value, a subnormal where the format has them) are exact doubles. The
    sign of zero, infinities and NaN exist only where the flags say so. `epsilon` is the distance from 1 to
    the next value.
    """

    bits: int
    exponent_bits: int
    mantissa_bits: int
    max: float
    tiny: float
    smallest: float
    epsilon: float
    has_sign: bool
    has_negative_zero: bool
    has_infinity: bool
    has_nan: bool

    @property
    def unit_roundoff(self) -> float:
        """The largest relative error of rounding to nearest: half of `epsilon`."""
        return self.epsilon / 2

    @property
    def is_ieee(self) -> bool:
        """Whether the top exponent means infinity and NaN, and the lowest one zero and subnormals."""
        return self.has_infinity


@functools.cache
def float_format(dtype: DType) -> FloatFormat:
    """The format of a real floating dtype, or of the parts of a complex one. KeyError for other dtypes."""
    text = text_of(real_dtype(dtype))
    if not text_is_float(text):
        raise KeyError(text)
    info = finfo(real_dtype(dtype))
    unsigned_zero = text.endswith("UZ") or text == "f8E8M0FNU"
    return FloatFormat(
        bits=bit_width(text),
        exponent_bits=int(info.nexp),
        mantissa_bits=int(info.nmant),
        max=float(info.max),
        tiny=float(info.smallest_normal),
        smallest=float(info.smallest_subnormal),
        epsilon=float(info.eps),
        has_sign=text != "f8E8M0FNU",
        has_negative_zero=not unsigned_zero,
        has_infinity="FN" not in text,
        has_nan=not text.startswith(("f4E", "f6E")),
    )


@functools.cache
def integer_limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype (0 and 1 for booleans)."""
    if is_bool(dtype):
        return 0, 1
    width = width_of(dtype)
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed(dtype) else (0, (1 << width) - 1)


@functools.cache
def width_of(dtype: DType) -> int:
    """The width in bits of one value (4 for int4, 1 for bool), whatever its storage."""
    return bit_width(text_of(dtype))


@functools.cache
def is_bool(dtype: DType) -> bool:
    """Whether the dtype is i1."""
    return dtype == np.bool_


@functools.cache
def is_float(dtype: DType) -> bool:
    """Whether the dtype is a real floating-point type."""
    return text_is_float(text_of(dtype))


@functools.cache
def is_complex(dtype: DType) -> bool:
    """Whether the dtype is complex."""
    return text_is_complex(text_of(dtype))


@functools.cache
def is_integer(dtype: DType) -> bool:
    """Whether the dtype is an integer type; i1 is not."""
    return text_is_integer(text_of(dtype))


@functools.cache
def is_signed(dtype: DType) -> bool:
    """Whether the dtype is a signed integer type."""
    return is_integer(dtype) and text_of(dtype).startswith("i")


@functools.cache
def is_unsigned(dtype: DType) -> bool:
    """Whether the dtype is an unsigned integer type."""
    return is_integer(dtype) and text_of(dtype).startswith("ui")


@functools.cache
def real_dtype(dtype: DType) -> DType:
    """The dtype of the real part: float32 for complex64; a real dtype is its own."""
    dtype = np.dtype(dtype)
    return {"F": np.dtype(np.float32), "D": np.dtype(np.float64)}.get(dtype.char, dtype)


def real_part(x: Array) -> Array:
    """A view of the real parts of a complex array."""
    return cast(Any, x).real


def imag_part(x: Array) -> Array:
    """A view of the imaginary parts of a complex array."""
    return cast(Any, x).imag


@functools.cache
def bits_dtype(dtype: DType) -> DType:
    """The unsigned integer dtype with the same storage size."""
    return np.dtype(f"uint{np.dtype(dtype).itemsize * 8}")
