"""Rounding once: against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.dtypes import DTYPES, text_of
from gcomp.reference.numpy.dtypes import float_format, width_of
from gcomp.reference.numpy.rounding import (
    canonical_nan,
    flip_sign,
    from_value_bits,
    integers_to_f64_odd,
    narrow,
    value_bits,
)

from .samples import FLOATS, edges

NARROW = [d for d in FLOATS if width_of(d) <= 16 and float_format(d).has_sign]


def exact_nearest(x: float, dtype: np.dtype) -> float:
    """Round to nearest even among all finite values of `dtype`, infinity excluded."""
    form = float_format(dtype)
    scale = Fraction(2) ** max(math.frexp(x)[1] - 1 - form.mantissa_bits, math.frexp(form.smallest)[1] - 1)
    quotient = Fraction(x) / scale
    return float(round(quotient) * scale)


@pytest.mark.parametrize("dtype", NARROW, ids=text_of)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_narrow_rounds_once(dtype: np.dtype, data: st.DataObject) -> None:
    form = float_format(dtype)
    bits = data.draw(st.integers(0, (1 << (form.bits - 1)) - 2))
    pair = from_value_bits(np.array([bits, bits + 1]).astype(f"uint{dtype.itemsize * 8}"), dtype).astype(np.float64)
    if not np.isfinite(pair).all():
        return
    middle = pair.mean()
    # On, just above and just below the tie: where a detour through float32 goes wrong.
    for x in (middle, np.nextafter(middle, np.inf), np.nextafter(middle, 0), -middle, pair[0]):
        assert float(narrow(np.array(x), dtype)) == exact_nearest(float(x), dtype), x


@given(st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=100, deadline=None)
def test_integers_round_to_odd(value: int) -> None:
    odd = float(integers_to_f64_odd(np.array([value], np.int64))[0])
    if int(odd) == value:
        return
    assert abs(Fraction(odd) - value) < Fraction(float(np.spacing(abs(odd))))
    assert int(np.float64(odd).view(np.uint64)) & 1


@pytest.mark.parametrize("dtype", FLOATS, ids=text_of)
def test_nans_become_canonical(dtype: np.dtype) -> None:
    if not float_format(dtype).has_nan:
        pytest.skip(f"{text_of(dtype)} has no NaN")
    bits = np.arange(1 << min(width_of(dtype), 16), dtype=np.uint64).astype(f"uint{dtype.itemsize * 8}")
    values = from_value_bits(bits if width_of(dtype) <= 16 else ~bits, dtype)
    nans = values[np.isnan(values.astype(np.float64))]
    assert nans.size and len({int(b) for b in value_bits(canonical_nan(nans.copy()))}) == 1


@pytest.mark.parametrize("dtype", [d for d in FLOATS if float_format(d).has_sign], ids=text_of)
def test_flip_sign_is_an_involution_that_negates(dtype: np.dtype) -> None:
    x = edges(dtype)
    flipped = flip_sign(x)
    assert np.array_equal(value_bits(flip_sign(flipped)), value_bits(x))
    assert np.array_equal(flipped.astype(np.float64), -x.astype(np.float64), equal_nan=True)


def test_text_table_is_shared() -> None:
    from gcomp.reference.numpy import dtypes

    assert dtypes.DTYPES is DTYPES
