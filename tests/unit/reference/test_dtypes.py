"""Formats and limits agree with ml_dtypes and NumPy, and texts round-trip."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.dtypes import DTYPES, dtype_of, text_of
from gcomp.reference.numpy.dtypes import float_format, integer_limits, is_float, is_integer, width_of
from gcomp.reference.numpy.rounding import from_value_bits, value_bits

from .samples import FLOATS, INTEGERS


@pytest.mark.parametrize("text", DTYPES)
def test_texts_round_trip(text: str) -> None:
    assert text_of(dtype_of(text)) == text
    assert is_float(dtype_of(text)) + is_integer(dtype_of(text)) <= 1


@pytest.mark.parametrize("dtype", [d for d in FLOATS if width_of(d) <= 16], ids=text_of)
def test_float_format_describes_every_bit_pattern(dtype: np.dtype) -> None:
    form = float_format(dtype)
    bits = np.arange(1 << form.bits, dtype=np.uint64).astype(f"uint{dtype.itemsize * 8}")
    values = from_value_bits(bits, dtype)
    wide = values.astype(np.float32).astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    assert np.array_equal(value_bits(values), bits)
    assert finite.max() == form.max
    assert finite[finite > 0].min() == form.smallest
    assert np.isinf(wide).any() == form.has_infinity
    assert np.isnan(wide).any() == form.has_nan
    assert (wide < 0).any() == form.has_sign
    assert ((wide == 0) & np.signbit(wide)).any() == form.has_negative_zero
    above_one = finite[finite > 1]
    assert above_one.min() - 1 == form.epsilon


@pytest.mark.parametrize("dtype", INTEGERS, ids=text_of)
def test_integer_limits_are_values_and_wrap(dtype: np.dtype) -> None:
    low, high = integer_limits(dtype)
    ends = np.array([low, high], np.int64 if low else np.uint64).astype(dtype)
    assert [int(v) for v in ends.astype(object)] == [low, high]
    assert high - low + 1 == 1 << width_of(dtype)
