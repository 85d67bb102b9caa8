"""Batches of small images of digits, the same for everybody; a batch may be given in another order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

IMAGES = Path(__file__).parents[2] / "examples" / "digits" / "heldout.npz"
BATCH = 32
SHADES = 17
"""Pixels have 17 shades; as tokens, 0 to 16."""

Batch = tuple[np.ndarray, np.ndarray]


def batches(steps: int, order: int = 0) -> Iterator[Batch]:
    """Images (f32[32, 1, 8, 8]) and labels (i32[32]). Each order has the same batches, with other rows first.

    A loss is a mean over the batch, so an order changes nothing but the order of sums, and so the roundings: how far
    two orders come apart is what rounding does to a curve.
    """
    with np.load(IMAGES) as file:
        images, labels = file["images"], file["labels"].astype(np.int32)
    chosen, shuffled = np.random.default_rng(1), np.random.default_rng(100 + order)
    for _ in range(steps):
        rows = chosen.choice(len(images), BATCH, replace=False)
        if order:
            rows = shuffled.permutation(rows)
        yield images[rows], labels[rows]


def tokens(images: np.ndarray) -> np.ndarray:
    """The pixels of images as sequences of tokens (i32[32, 64])."""
    return np.round(images * (SHADES - 1)).astype(np.int32).reshape(len(images), -1)
