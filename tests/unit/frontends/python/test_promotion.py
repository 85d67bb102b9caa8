"""Element types are NumPy's: for every pair, and for Python numbers beside arrays."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp import ops
from gcomp.dtypes import text_of
from gcomp.errors import UsageError
from gcomp.tensors.lifting import common_text
from gcomp.tensors.promotion import element_text, floating, sum_type

NATIVE = tuple(
    np.dtype(t) for t in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
)
OPERANDS = st.one_of(
    st.sampled_from(NATIVE).map(lambda t: np.zeros((), t)), st.booleans(), st.integers(0, 1), st.just(0.5), st.just(1j)
)


@settings(max_examples=300, deadline=None)
@given(st.lists(OPERANDS, min_size=1, max_size=4))
def test_common_types_are_numpys(operands: list[Any]) -> None:
    assert common_text(*operands) == text_of(np.result_type(*operands))


@pytest.mark.parametrize("dtype", [t for t in NATIVE if t.kind in "biuf"], ids=str)
def test_functions_and_sums(dtype: np.dtype[Any]) -> None:
    one = np.ones(1, dtype)
    assert floating(text_of(dtype)) == text_of(np.exp(one).dtype)
    assert sum_type(text_of(dtype)) == text_of(np.sum(one).dtype)
    assert ops.exp(one).dtype == np.exp(one).dtype and (ops.asarray(one) / one).dtype == (one / one).dtype


def test_narrow_floats_follow_the_rule() -> None:
    half = np.ones(2, ml_dtypes.bfloat16)
    assert (ops.asarray(half) + 1.5).dtype == half.dtype == (1 + ops.asarray(half)).dtype
    assert (ops.asarray(half) + np.float32(1)).dtype == np.float32
    assert (half * ops.asarray(half)).dtype == half.dtype
    with pytest.raises(UsageError, match="no common element type of bfloat16 and float16"):
        ops.asarray(half) + np.float16(1)


def test_names_of_types() -> None:
    for spec in ("float32", "f32", np.float32, np.dtype("f4"), ">f4"):
        assert element_text(spec) == "f32"
    assert [element_text(t) for t in (bool, int, float, complex, "bfloat16")] == [
        "i1", "i64", "f64", "complex<f64>", "bf16",
    ]  # fmt: skip
    for wrong in ("float33", str, object, "O", "M8[s]"):
        with pytest.raises(UsageError, match="no element type"):
            element_text(wrong)


def test_integers_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="300 is out of bounds for uint8"):
        ops.asarray(np.uint8(1)) + 300
    assert (ops.asarray(np.uint8(1)) + 254).numpy() == 255


def test_arrays_of_other_byte_orders() -> None:
    swapped = np.arange(3, dtype=">i4")
    assert (ops.asarray(swapped) + 1).numpy().tolist() == [1, 2, 3]


def test_arrays_are_copied() -> None:
    mine = np.zeros(3)
    x = ops.asarray(mine)
    mine[0] = 1
    assert x.numpy()[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 2
