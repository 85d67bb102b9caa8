"""Arrays full of edge values, shared by the tests of the reference."""

from __future__ import annotations

import numpy as np

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy.conversion import convert
from gcomp.reference.numpy.dtypes import Array, DType, integer_limits, is_complex, is_float, is_integer
from gcomp.reference.numpy.rounding import value_bits

FLOATS = [dtype for text, dtype in DTYPES.items() if is_float(dtype)]
IEEE = [DTYPES[text] for text in ("f16", "bf16", "f32", "f64")]
INTEGERS = [dtype for text, dtype in DTYPES.items() if is_integer(dtype)]

EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 0.1, 100.0, -100.0, 88.7, 1e-40, -1e-40, 5e-324, 1e30]
    + [-1e30, 3e38, 1e300, np.inf, -np.inf, np.nan, 127.5, -128.5, 0.49999997, 8388608.5, 1e-8, 65504.0, 448.0],
    np.float64,
)


def edges(dtype: DType) -> Array:
    """Edge values of a real dtype."""
    if is_float(dtype):
        return convert(EDGES, dtype=dtype)
    low, high = integer_limits(dtype)
    values = {0, 1, 2, 3, 5, 7, 100, low, low + 1, high, high - 1, -1, -2, -3, -7, high // 2 + 1}
    return np.array(sorted(v for v in values if low <= v <= high), np.int64 if low else np.uint64).astype(dtype)


def pairs(x: Array) -> tuple[Array, Array]:
    """All ordered pairs of the elements of x."""
    return np.repeat(x, x.size), np.tile(x, x.size)


def integers(x: Array) -> list[int]:
    """The elements as Python integers."""
    return [int(v) for v in x.ravel().astype(object)]


def same_bits(actual: Array, expected: Array) -> bool:
    """Whether two arrays agree in dtype, shape and every bit."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    if is_complex(actual.dtype):
        return actual.tobytes() == expected.tobytes()
    return bool(np.array_equal(value_bits(actual), value_bits(expected)))


def same_values(actual: Array, expected: Array) -> bool:
    """As `same_bits`, with all NaNs equal."""
    actual, expected = np.array(actual), np.array(expected)
    both = np.isnan(actual) & np.isnan(expected)
    actual[both] = expected[both]
    return same_bits(actual, expected)
