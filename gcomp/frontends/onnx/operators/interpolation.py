"""How a resized axis is interpolated: which elements of the input each position reads, and their weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gcomp.records import record

Array: TypeAlias = np.ndarray[Any, Any]


@record
class Taps:
    """For each output position: which input positions it reads, their weights, and whether it lies outside."""

    positions: Array
    weights: Array
    outside: Array | None


@record
class Interpolation:
    """How a Resize node interpolates."""

    mode: str
    transform: str
    nearest: str
    cubic_a: float
    antialias: bool
    exclude_outside: bool

    def taps(self, size: int, out: int, scale: float, roi: tuple[float, float]) -> Taps:
        """The taps of one axis."""
        x, outside = self._source(size, out, scale, roi)
        base = np.floor(x).astype(np.int64)
        offsets, weights = self._kernel(x - base, scale)
        positions = base[:, None] + offsets[None, :]
        if self.exclude_outside:
            weights = np.where((positions < 0) | (positions >= size), 0.0, weights)
            total = weights.sum(axis=1, keepdims=True)
            weights = weights / np.where(total == 0, 1.0, total)
        return Taps(np.clip(positions, 0, size - 1), weights, outside)

    def _source(self, size: int, out: int, scale: float, roi: tuple[float, float]) -> tuple[Array, Array | None]:
        """Where output positions lie in the input."""
        y, width = np.arange(out, dtype=np.float64), scale * size
        match self.transform:
            case "align_corners":
                return (np.zeros(out) if width == 1 else y * (size - 1) / (width - 1)), None
            case "asymmetric":
                return y / scale, None
            case "tf_half_pixel_for_nn":
                return (y + 0.5) / scale, None
            case "tf_crop_and_resize":
                span = (roi[1] - roi[0]) * (size - 1)
                x = np.full(out, span / 2) if width == 1 else y * span / (width - 1)
                x = x + roi[0] * (size - 1)
                return x, (x < 0) | (x > size - 1)
            case "pytorch_half_pixel" if width == 1:
                return np.full(out, -0.5), None
            case "half_pixel_symmetric":
                return size / 2 * (1 - out / width) + (y + 0.5) / scale - 0.5, None
            case _:
                return (y + 0.5) / scale - 0.5, None

    def _kernel(self, ratio: Array, scale: float) -> tuple[Array, Array]:
        """Offsets from the position on the left, and weights for each ratio."""
        if self.mode == "nearest":
            pick = NEAREST[self.nearest](ratio).astype(np.float64)
            return np.array([0, 1]), np.stack([1 - pick, pick], axis=1)
        reach = 1 if self.mode == "linear" else 2
        shrink = min(scale, 1.0) if self.antialias else 1.0
        first = math.floor(-reach / shrink) + 1
        offsets = np.arange(first, 2 - first)
        distance = np.abs((offsets[None, :] - ratio[:, None]) * shrink)
        weights = np.clip(1 - distance, 0, 1) if self.mode == "linear" else self._cubic(distance)
        return offsets, weights / weights.sum(axis=1, keepdims=True) if self.antialias else weights

    def _cubic(self, x: Array) -> Array:
        a = self.cubic_a
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda r: r > 0.5,
    "round_prefer_ceil": lambda r: r >= 0.5,
    "floor": lambda r: np.zeros_like(r, bool),
    "ceil": lambda r: r > 0,
}
