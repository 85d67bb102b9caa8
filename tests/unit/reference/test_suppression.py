"""Suppression of boxes, box by box as it is defined, for more boxes than are compared at a time."""

from __future__ import annotations

import numpy as np
import pytest

from gcomp.reference.numpy.host import non_max_suppression


def kept(boxes: np.ndarray, scores: np.ndarray, most: int, overlap: np.float32, least: np.float32) -> list[int]:
    """Of the boxes of one class, those that no better one overlaps."""
    found: list[int] = []
    for box in sorted(np.flatnonzero(scores > least), key=lambda box: (-scores[box], box)):
        if len(found) < most and not any(_overlaps(boxes[box], boxes[other], overlap) for other in found):
            found.append(int(box))
    return found


def _overlaps(one: np.ndarray, two: np.ndarray, overlap: np.float32) -> bool:
    area, other = ((b[2] - b[0]) * (b[3] - b[1]) for b in (one, two))
    sides = np.minimum(one[2:], two[2:]) - np.maximum(one[:2], two[:2])
    shared = np.float32(np.prod(np.maximum(sides, 0)))
    return bool(shared > 0 and area > 0 and other > 0 and shared / (area + other - shared) > overlap)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("most", [0, 1, 70, 2**62])
@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_boxes_are_kept_one_by_one(count: int, most: int, overlap: float) -> None:
    random = np.random.default_rng(count)
    low = random.integers(0, 30, (2, count, 2))
    boxes = np.concatenate([low, low + random.integers(0, 6, (2, count, 2))], 2).astype(np.float32)
    scores = random.integers(0, 20, (2, 3, count)).astype(np.float32)
    scores[:, 0, : count // 4] = np.nan
    limits = np.asarray(overlap, np.float32), np.asarray(3, np.float32)
    (rows,) = non_max_suppression(boxes, scores, np.asarray(most), *limits)
    expected = [(b, c, box) for b in range(2) for c in range(3) for box in kept(boxes[b], scores[b, c], most, *limits)]
    assert rows.tolist() == [list(row) for row in expected]
