"""Weights in fewer bytes than they take: as integers, or integers times scales, wherever that gives every bit back.

Quantized models come with integers and scales. What passes make of them (a kernel in f32, dequantized and laid out in
panels) is large, and holds nothing more. Which weights these are is found by looking at their numbers, so that it does
not matter what was done to them; what does not come back to the bit is stored as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from gcomp.dtypes import DTYPES
from gcomp.records import record

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

NARROWER: Mapping[str, tuple[str, ...]] = {
    "f32": ("i8", "ui8", "i16"), "f64": ("i8", "ui8", "i16"), "i32": ("i8", "ui8", "i16"), "i64": ("i8", "ui8", "i16"),
}  # fmt: skip
"""Element type of a weight -> the types that it may be stored as, where each number is one of theirs."""

SCALED = "f32"
"""The element type of weights that may be integers times scales, and of the scales."""

_LEAST = 1024
"""Bytes below which a tensor is stored as it is: where the next one starts is rounded up anyway."""
_FEW = 64
"""How many numbers tell, nearly always, that a tensor is of no integers."""
_STEPS = 255
"""The most steps of a scale that the largest number of those that share it may be: those of eight bits, and of the
difference of two of them."""
_SAMPLES = 8
"""How many numbers tell, nearly always, that they are no multiples of a scale."""
_SHARING = 16
"""So many numbers share a scale, at least: fewer would save little."""


@record
class Narrow:
    """How a tensor is stored: as integers of a type. With `scales` its numbers are these times the scales, which are
    broadcast over it, rounded once."""

    dtype: str
    scales: Array | None = None

    def integers(self, array: Array) -> Array:
        """The integers that stand for an array."""
        if self.scales is None:
            return array.astype(DTYPES[self.dtype])
        with np.errstate(invalid="ignore"):
            return np.rint(array / self.scales).astype(DTYPES[self.dtype])


def widen(integers: Array, scales: Array | None, wide: Array) -> None:
    """Put the numbers that integers stand for into an array."""
    if scales is None:
        np.copyto(wide, integers, casting="unsafe")
    else:
        np.multiply(integers, scales, out=wide, dtype=wide.dtype, casting="unsafe")


def scales_fit(scales: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    """Whether scales of a shape are one number, or all, for each dimension of a tensor."""
    return len(scales) == len(dims) and all(n in (1, size) for n, size in zip(scales, dims, strict=True))


def narrow(array: Array, dtype: str) -> Narrow | None:
    """How to store an array in fewer bytes, if it comes back to the bit."""
    if array.nbytes < _LEAST:
        return None
    with np.errstate(invalid="ignore", over="ignore", divide="ignore", under="ignore"):
        few = array.flat[:_FEW]  # no copy of all of an array that is not contiguous
        found = [Narrow(name) for name in NARROWER.get(dtype, ())]
        if (plain := next((n for n in found if _comes_back(few, n) and _comes_back(array, n)), None)) is not None:
            return plain
        scales = scales_of(array) if dtype == SCALED else None
        scaled = [] if scales is None else [Narrow(name, scales) for name in NARROWER[dtype]]
        return next((n for n in scaled if _comes_back(array, n)), None)


def _comes_back(array: Array, how: Narrow) -> bool:
    """Whether storing an array so keeps every bit of it."""
    wide = np.empty(array.shape, array.dtype)
    widen(how.integers(array), how.scales, wide)
    kind = np.dtype(f"u{array.dtype.itemsize}")
    return bool(np.array_equal(np.ascontiguousarray(array).view(kind), wide.view(kind)))


def scales_of(array: Array, shape: tuple[int, ...] | None = None) -> Array | None:
    """The scales whose multiples an array's numbers are: one for all, or one for each index of a dimension or two.

    With `shape` only scales of this shape. Those of nothing but zeros are 1.
    """
    for kept in _sharing(array.shape):
        found = tuple([size if i in kept else 1 for i, size in enumerate(array.shape)])
        if shape is not None and found != shape:
            continue
        scales: list[np.float32] = []
        for place in np.ndindex(found):
            # The first group tells nearly always: nothing is copied for the others.
            group = array[tuple([place[i] if i in kept else slice(None) for i in range(array.ndim)])]
            if (scale := _scale_of(group.reshape(-1))) is None:
                break
            scales.append(scale)
        else:
            return np.array(scales, np.float32).reshape(found)
    return None


def _sharing(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The dimensions that may have scales of their own: none, the last, the first, and both (panels and columns)."""
    last = len(shape) - 1
    total = int(np.prod(shape))
    for kept in dict.fromkeys(((), (last,), (0,), (0, last))):
        count = int(np.prod([shape[i] for i in kept]))
        if len({*kept}) == len(kept) and count * _SHARING <= total and (not kept or count > 1):
            yield kept


def _scale_of(numbers: Array) -> np.float32 | None:
    """The largest scale of which numbers are multiples by whole numbers of up to `_STEPS`, rounded to f32."""
    most = max(numbers.max(), -numbers.min())
    if most == 0:
        return np.float32(1)
    if not np.isfinite(most):
        return None
    near = (most / np.arange(1, _STEPS + 1, dtype=np.float64)).astype(np.float32)
    scales = np.stack([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf))], 1).reshape(-1)
    scales = scales[scales > 0]
    some = numbers[:: max(1, numbers.size // _LEAST)]
    few = (some[some != 0] if some.any() else numbers[numbers != 0])[:_SAMPLES]
    for scale in scales[_are_multiples(few[None, :], scales[:, None])]:
        if _are_multiples(numbers[None, :], np.full((1, 1), scale))[0]:
            return scale
    return None


def _are_multiples(numbers: Array, scales: Array) -> Array:
    return np.all(np.rint(numbers / scales) * scales == numbers, axis=1)


__all__ = ["NARROWER", "SCALED", "Narrow", "narrow", "scales_fit", "scales_of", "widen"]
