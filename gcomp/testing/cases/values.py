"""Values at the edges of each element type: zeros of both signs, NaN, infinities, denormals, extremes, ties."""

from __future__ import annotations

import math
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
    carrier = np.uint64 if low == 0 else np.int64
    return np.array([n for n in sorted(numbers) if low <= n <= high], carrier).astype(dtype_of(text))


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


def every(text: str) -> Array:
    """All values of a type of at most 16 bits, NaN patterns included, as a vector."""
    width, dtype = bit_width(text), dtype_of(text)
    if text == "i1":
        return np.array([False, True])
    carrier = np.arange(1 << width, dtype=np.uint32).astype(f"u{dtype.itemsize}")
    if is_integer(text) and width < 8:
        return carrier.astype(np.int8).astype(dtype)
    return carrier.view(dtype)


def sample(rng: np.random.Generator, text: str, shape: tuple[int, ...]) -> Array:
    """Random values: half ordinary, half edges (from the type's whole range)."""
    count = math.prod(shape)
    dtype = dtype_of(text)
    if text == "i1":
        return rng.random(shape) < 0.5
    pool = edges(text)
    special = pool[rng.integers(0, pool.size, count)]
    with np.errstate(all="ignore"):
        ordinary = _ordinary(rng, text, count)
    chosen = rng.random(count) < 0.5
    return cast(Array, np.where(chosen, special, ordinary).astype(dtype).reshape(shape))


def moderate(rng: np.random.Generator, text: str, shape: tuple[int, ...]) -> Array:
    """Random finite values of ordinary size."""
    return _ordinary(rng, text, math.prod(shape)).reshape(shape)


def _ordinary(rng: np.random.Generator, text: str, count: int) -> Array:
    dtype = dtype_of(text)
    if text == "i1":
        return rng.random(count) < 0.5
    if is_integer(text):
        limits: Any = ml_dtypes.iinfo(dtype)
        low, high = max(int(limits.min), -100), min(int(limits.max), 100)
        return rng.integers(low, high, count, endpoint=True).astype(dtype)
    if is_complex(text):
        return (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(dtype)
    return (rng.normal(size=count) * np.exp2(rng.integers(-3, 4, count))).astype(dtype)
