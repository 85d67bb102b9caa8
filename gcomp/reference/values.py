"""Values of each element type from which inputs and constants are drawn: edges, small whole numbers, ordinary ones."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, cast

import ml_dtypes
import numpy as np

from gcomp.dtypes import bit_width, dtype_of, is_complex, is_float, is_integer, real_of

Array = np.ndarray[Any, Any]

_INTERESTING = (
    0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 0.75, 0.1, 1 / 3, math.pi, math.pi / 2, math.e, 10.0, 100.0, 1e-3, 1e-8,
    8388607.5, 8388608.0, 16777217.0, 2.0**31, 2.0**32, 2.0**63, 88.7, 88.8, 103.9, 709.7, 709.9, 745.2,
    1e5, 1e10, 1e30,
)  # fmt: skip


_BETWEEN_FLOATS = (2**8 + 1, 2**11 + 1, 2**24 + 1, 2**53 + 1)
"""The least whole numbers above 0 that bf16, f16, f32 and f64 do not hold."""


def floats(text: str) -> Array:
    """The edge values of a float type, each with both signs."""
    dtype = dtype_of(text)
    limits = cast(Any, ml_dtypes.finfo(dtype))
    one = np.asarray(1.0, np.float64)
    spacing = float(limits.eps)
    numbers = [
        *_INTERESTING,
        *(float(getattr(limits, name)) for name in ("max", "tiny", "smallest_subnormal", "eps")),
        float(limits.smallest_subnormal) * 3,
        float(limits.tiny) * (1 - spacing),
        float(one + spacing),
        float(one - spacing / 2),
        math.inf,
        math.nan,
    ]
    both = np.array([sign * n for n in numbers for sign in (1.0, -1.0)])
    with np.errstate(all="ignore"):
        return np.unique(both.astype(dtype).view(f"u{dtype.itemsize}")).view(dtype)


def integers(text: str) -> Array:
    """The edge values of an integer type."""
    limits: Any = ml_dtypes.iinfo(dtype_of(text))
    low, high = int(limits.min), int(limits.max)
    width = bit_width(text)
    numbers = {low, low + 1, low // 2, -2, -1, 0, 1, 2, 3, 5, 7, width - 1, width, width + 1, high // 2, high - 1, high}
    numbers |= {sign * n for n in _BETWEEN_FLOATS for sign in (1, -1)}
    carrier = np.uint64 if low == 0 else np.int64
    return np.array([n for n in sorted(numbers) if low <= n <= high], carrier).astype(dtype_of(text))


@cache
def about(text: str, number: float) -> Array:
    """A number, its neighbours, its double and its half, with both signs, as far as the element type holds them.

    At least two of them, or none.
    """
    dtype = dtype_of(text)
    found = np.empty(0, dtype)
    if is_integer(text):
        limits: Any = ml_dtypes.iinfo(dtype)
        whole = int(number)
        wanted = (whole, whole - 1, whole + 1, 2 * whole, whole // 2, -whole, -whole - 1, -2 * whole)
        held = [n for n in dict.fromkeys(wanted) if int(limits.min) <= n <= int(limits.max)]
        found = np.array([np.asarray(n).astype(dtype) for n in held], dtype)
    elif is_float(text) and text != "f8E8M0FNU":
        steps = (number, number * (1 - 1e-3), number * (1 + 1e-3), 2 * number, number / 2)
        with np.errstate(all="ignore"):
            values = np.array([sign * n for n in steps for sign in (1.0, -1.0)]).astype(dtype)
        found = values[np.isfinite(values.astype(np.float64))]
    return found if found.size > 1 else found[:0]


def edges(text: str) -> Array:
    """The edge values of any element type, as a vector."""
    if text == "i1":
        return np.array([False, True])
    if is_integer(text):
        return integers(text)
    if is_float(text):
        return floats(text)
    parts = floats(real_of(text))[::6]
    grid = np.stack(np.broadcast_arrays(parts[:, None], parts[None, :]), axis=-1).reshape(-1, 2)
    return np.ascontiguousarray(grid).view(dtype_of(text)).reshape(-1)


@cache
def edge_pool(text: str) -> Array:
    """The edge values of an element type: 0 and 1 first, and those that matter most several times."""
    special, pool = special_pool(text), edges(text)
    return np.concatenate([special] * (1 if is_complex(text) else 3) + [pool])


@cache
def special_pool(text: str) -> Array:
    """The edge values that matter most, 0 and 1 first: what reductions begin with, and what decides how they end."""
    dtype = dtype_of(text)
    special: list[Any] = [0, 1]
    if is_float(text):
        limits = cast(Any, ml_dtypes.finfo(dtype))
        least, most = float(limits.smallest_subnormal), float(limits.max)
        special = [0.0, 1.0, -0.0, np.nan, np.inf, -np.inf, -1.0, least, -least, most, -most]
    elif is_integer(text):
        known: Any = ml_dtypes.iinfo(dtype)
        special = [0, 1, int(known.min), int(known.max)]
    elif is_complex(text):
        parts = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40)
        special = [0, 1, *(complex(a, b) for a in parts for b in parts)]
    with np.errstate(all="ignore"):
        return np.array(special).astype(dtype)


@cache
def small_pool(text: str) -> Array:
    """Small whole numbers of an element type, which may wrap."""
    numbers = [0, 1, 2, 3, -1, -2] if text[0] != "u" else [0, 1, 2, 3]
    with np.errstate(all="ignore"):
        return np.array(numbers).astype(dtype_of(text))


@cache
def index_pool(text: str) -> Array:
    """Small whole numbers, mostly 0 and 1."""
    return np.concatenate([np.array([0, 1, 0, 1, 2]).astype(dtype_of(text)), small_pool(text)])


@cache
def pools_of(text: str) -> tuple[Array, ...]:
    """The kinds of values of an element type: small whole numbers, ordinary ones, all mixed, edges."""
    whole = whole_numbers(text)
    if text == "i1":
        return (whole,)
    extreme = edge_pool(text)
    if is_float(text):
        extreme = np.concatenate([extreme, _payloads(text)])
    ordinary = _ordinary(text)
    mixed = np.concatenate([np.resize(whole, 40), ordinary, extreme])
    return whole, ordinary, mixed, extreme


def whole_numbers(text: str) -> Array:
    """Small whole numbers that the type holds."""
    if text == "i1":
        return np.array([False, True])
    low = {"i2": -2, "ui2": 0, "f8E8M0FNU": 1}.get(text, 0 if text[0] == "u" else -3)
    high = {"i2": 1, "f8E8M0FNU": 2}.get(text, 3)
    numbers = sorted(range(low, high + 1), key=lambda n: (abs(n), -n))
    if is_complex(text):
        return np.array([complex(n, m) for n in numbers[:5] for m in (0, 1, -2)]).astype(dtype_of(text))
    return np.array(numbers).astype(dtype_of(text))


def _ordinary(text: str) -> Array:
    rng, dtype = np.random.default_rng(7), dtype_of(text)
    if is_complex(text):
        return (rng.standard_normal(64) + 1j * rng.standard_normal(64)).astype(dtype)
    if is_float(text):
        with np.errstate(all="ignore"):
            return (rng.standard_normal(64) * np.exp2(rng.integers(-3, 4, 64))).astype(dtype)
    return np.resize(np.concatenate([edges(text), np.arange(8).astype(dtype), whole_numbers(text)]), 64)


def _payloads(text: str) -> Array:
    """Quiet NaNs of several payloads and both signs, where the type has payloads."""
    dtype = dtype_of(real_of(text))
    patterns = {
        "f64": (0x7FF8000000000123, 0xFFF8000000000000, 0xFFFC000000000001),
        "f32": (0x7FC00123, 0xFFC00000, 0xFFE00001),
        "f16": (0x7E23, 0xFE00, 0x7F01), "bf16": (0x7FC3, 0xFFC0, 0x7FE1), "f8E5M2": (0x7E, 0x7F, 0xFF),
    }.get(text, ())  # fmt: skip
    return np.array(patterns, f"u{dtype.itemsize}").view(dtype)
