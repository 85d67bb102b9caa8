"""Values for the cases of single ops: all of a small type, random ones of any."""

from __future__ import annotations

import math
from typing import Any, cast

import ml_dtypes
import numpy as np

from gcomp.dtypes import bit_width, dtype_of, is_complex, is_integer
from gcomp.reference.values import edges

Array = np.ndarray[Any, Any]


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
