"""The matrix that weighs the frequencies of a spectrum into bands of the mel scale, as ONNX defines it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gcomp.errors import InputError

Array = np.ndarray[Any, Any]

_MOST = 1 << 28


def mel_weight_matrix(bins: Array, length: Array, rate: Array, low: Array, high: Array) -> tuple[Array, ...]:
    """Triangles over the `length // 2 + 1` frequencies of a transform, one a column: f64[frequencies, bins].

    `rate` is that of the samples, `low` and `high` the edges of all bands, in hertz. What a triangle has above the
    highest frequency, or below the lowest, is cut off. InputError for what makes no bands.
    """
    count, size, samples = (int(x.reshape(())) for x in (bins, length, rate))
    edges = [float(x.reshape(())) for x in (low, high)]
    fine = count >= 1 and size >= 0 and samples >= 1 and all(0 <= edge < np.inf for edge in edges)
    if not fine or (size // 2 + 1) * count > _MOST:
        raise InputError(
            f"There are no {count} mel bands from {edges[0]} to {edges[1]} Hz of {size} samples at {samples} Hz.",
            why="Counts are positive, and edges are finite and not negative.",
        )
    mels = [2595 * np.log1p(edge / 700) / np.log(10) for edge in edges]
    points = np.arange(count + 2) * ((mels[1] - mels[0]) / (count + 2)) + mels[0]
    hertz = 700 * np.expm1(points / 2595 * np.log(10))
    places = (((size + 1) * hertz) // samples).astype(np.int64)
    left, center, right = places[:-2], places[1:-1], places[2:]
    j = np.arange(size // 2 + 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising, falling = (j - left) / (center - left), (right - j) / (right - center)
    matrix = np.where((left == center) & (j == center), 1.0, 0.0)
    matrix = np.where((left <= j) & (j <= center) & (left != center), rising, matrix)
    return (np.where((center <= j) & (j < right), falling, matrix),)
