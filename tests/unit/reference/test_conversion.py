"""Conversions by value against exact arithmetic, by bits against each other, and reduced precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcomp.dtypes import DTYPES, text_of
from gcomp.reference.numpy.conversion import bitcast_convert, convert, reduce_precision
from gcomp.reference.numpy.dtypes import float_format, integer_limits, width_of
from gcomp.reference.numpy.rounding import value_bits

from .samples import EDGES, FLOATS, INTEGERS, edges, integers, same_bits, same_values

BOOL = np.dtype(np.bool_)


@pytest.mark.parametrize("target", INTEGERS, ids=text_of)
@pytest.mark.parametrize("source", INTEGERS, ids=text_of)
def test_integers_wrap(source: np.dtype, target: np.dtype) -> None:
    x = edges(source)
    low, _ = integer_limits(target)
    width = width_of(target)
    assert integers(convert(x, dtype=target)) == [(v - low) % (1 << width) + low for v in integers(x)]


@pytest.mark.parametrize("target", INTEGERS, ids=text_of)
@pytest.mark.parametrize("source", FLOATS, ids=text_of)
def test_floats_truncate_and_saturate(source: np.dtype, target: np.dtype) -> None:
    big = np.array([2.0**31, 2.0**32, 2.0**63, 2.0**64, -(2.0**63), -(2.0**64), 255.9, -128.9, 9.3e18])
    x = np.concatenate([edges(source), convert(big, dtype=source)])
    low, high = integer_limits(target)
    for value, got in zip(x.astype(np.float64), integers(convert(x, dtype=target)), strict=True):
        if math.isnan(value):
            assert got == 0
        else:
            assert got == (high if value >= high else low if value <= low else int(value))


@pytest.mark.parametrize("target", [d for d in FLOATS if float_format(d).is_ieee], ids=text_of)
@pytest.mark.parametrize("source", ["i64", "ui64", "i32", "i4"])
def test_integers_round_once(source: str, target: np.dtype) -> None:
    tricky = [2**53 + 1, 2**62 + 2**38 + 1, 2**55 + 2**47 + 1, 2**63 - 1, 257, 2**24 + 1, 2049, -(2**62) - 2**54 - 1]
    low, high = integer_limits(DTYPES[source])
    values = [v for v in tricky + [0, 1, -1, low, high, 7] if low <= v <= high]
    got = convert(np.array(values, np.int64 if low else np.uint64).astype(DTYPES[source]), dtype=target)
    form = float_format(target)
    for value, rounded in zip(values, got.astype(np.float64).tolist(), strict=True):
        unit = 1 << max(abs(value).bit_length() - 1 - form.mantissa_bits, 0)
        expected = round_half_even(value, unit)
        assert rounded == (math.copysign(math.inf, value) if abs(expected) > form.max else expected)


def round_half_even(value: int, unit: int) -> int:
    quotient, rest = divmod(value, unit)
    up = 2 * rest > unit or (2 * rest == unit and quotient % 2 == 1)
    return (quotient + up) * unit


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=text_of)
def test_identity_moves_bits_and_truth_is_not_zero(dtype: np.dtype) -> None:
    x = edges(dtype)
    assert same_bits(convert(x, dtype=dtype), x)
    assert convert(x, dtype=BOOL).tolist() == [float(v) != 0 for v in x.astype(np.float64)]
    ones = convert(np.array([False, True]), dtype=dtype)
    if dtype != DTYPES["f8E8M0FNU"]:
        assert ones.astype(np.float64).tolist() == [0.0, 1.0]


def test_complex_conversions() -> None:
    z = np.array([1.5 + 2j, complex(np.nan, 1), 0 + 3j], np.complex64)
    assert same_values(convert(z, dtype=np.dtype(np.float64)), np.array([1.5, np.nan, 0]))
    assert convert(z, dtype=np.dtype(np.int8)).tolist() == [1, 0, 0]
    assert convert(z, dtype=BOOL).tolist() == [True, True, False]
    assert convert(np.array([3], np.int32), dtype=np.dtype(np.complex64)).tolist() == [3 + 0j]
    assert convert(z[:1], dtype=np.dtype(np.complex128)).tolist() == [1.5 + 2j]


def test_overflow_follows_the_format() -> None:
    x = np.array([1e5, -1e5, np.inf, np.nan])
    expected = {
        "f8E5M2": [np.inf, -np.inf, np.inf, np.nan],
        "f8E4M3FN": [np.nan, np.nan, np.nan, np.nan],
        "f8E4M3FNUZ": [np.nan, np.nan, np.nan, np.nan],
        "f6E3M2FN": [28.0, -28.0, 28.0, -0.0],
        "f4E2M1FN": [6.0, -6.0, 6.0, -0.0],
    }
    for text, values in expected.items():
        got = convert(x, dtype=DTYPES[text]).astype(np.float32).astype(np.float64)
        assert same_values(got, np.array(values)), text


WIDTHS = ["i1", "i2", "i4", "ui4", "f4E2M1FN", "i8", "f8E4M3FN", "bf16", "i32", "f32", "f64", "ui64"]


@pytest.mark.parametrize("target", WIDTHS)
@pytest.mark.parametrize("source", WIDTHS)
def test_bitcast_round_trips(source: str, target: str) -> None:
    old, new = width_of(DTYPES[source]), width_of(DTYPES[target])
    shape = (3, max(new // old, 1))
    raw = np.random.default_rng(0).integers(0, 2, (*shape, old), dtype=np.uint64)
    words = (raw << np.arange(old, dtype=np.uint64)).sum(axis=-1, dtype=np.uint64)
    x = (
        bitcast_convert(bitcast_convert(words, dtype=DTYPES["ui64"]), dtype=DTYPES[source])[..., 0]
        if old < 64
        else (bitcast_convert(words, dtype=DTYPES[source]))
    )
    cast = bitcast_convert(x, dtype=DTYPES[target])
    assert cast.dtype == DTYPES[target]
    assert cast.shape == ((3,) if new > old else shape if new == old else (*shape, old // new))
    assert same_bits(bitcast_convert(cast, dtype=DTYPES[source]), x)


def test_bitcast_is_little_endian() -> None:
    x = np.array([0x0123456789ABCDEF], np.uint64)
    assert bitcast_convert(x, dtype=np.dtype(np.uint16)).tolist() == [[0xCDEF, 0x89AB, 0x4567, 0x0123]]
    assert bitcast_convert(x, dtype=DTYPES["ui4"]).astype(int).tolist() == [list(range(15, -1, -1))]
    assert bitcast_convert(np.array(-2, np.int8), dtype=BOOL).tolist() == [False] + [True] * 7
    pair = bitcast_convert(np.array([1 + 2j], np.complex128), dtype=np.dtype(np.complex64))
    assert pair.shape == (1, 2)


@given(st.floats(width=32))
def test_reduce_precision_to_half_is_conversion_where_normal(value: float) -> None:
    x = np.array(value, np.float32)
    reduced = reduce_precision(x, exponent_bits=5, mantissa_bits=10)
    half = convert(convert(x, dtype=np.dtype(np.float16)), dtype=np.dtype(np.float32))
    expected = np.where(np.abs(half) < 2.0**-14, np.copysign(np.float32(0), x), half)
    if abs(value) < 2.0**-14 and abs(float(half)) >= 2.0**-14:
        return
    assert same_values(reduced, expected.astype(np.float32)) or math.isnan(value)


def test_reduce_precision_edges() -> None:
    x = np.array([np.nan, 1.0, -1.75, 3e38, 1e-40, -0.0, np.inf], np.float32)
    assert same_values(
        reduce_precision(x, exponent_bits=8, mantissa_bits=23)[[0, 1, 2, 3, 5, 6]], x[[0, 1, 2, 3, 5, 6]]
    )
    no_mantissa = reduce_precision(x, exponent_bits=8, mantissa_bits=0)
    assert same_values(no_mantissa, np.array([np.nan, 1.0, -2.0, np.inf, 0.0, -0.0, np.inf], np.float32))
    small = reduce_precision(convert(EDGES, dtype=DTYPES["f8E4M3FN"]), exponent_bits=3, mantissa_bits=1)
    assert small.dtype == DTYPES["f8E4M3FN"]
    assert (
        value_bits(reduce_precision(np.array(np.float64(1 + 2**-30)), exponent_bits=11, mantissa_bits=29))
        == 0x3FF << 52
    )
