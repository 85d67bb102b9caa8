"""Orders of buffers that planners place them in: words over the letters of `KEYS`, greatest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gcomp.memory.problem import Ints
from gcomp.records import record

Floats = np.ndarray[Any, np.dtype[np.float64]]


@record
class Features:
    """What is known of some buffers. Floats, since products of sizes and steps may not fit 64 bits."""

    size: Floats
    width: Floats
    """Steps alive."""
    pressure: Floats
    """The greatest sum of sizes, of those still to be placed, at a step of the buffer's life."""
    degree: Floats
    """How many buffers live together with it."""
    lower: Floats


KEYS: dict[str, Callable[[Features], Floats]] = {
    "A": lambda f: f.size * f.width,
    "B": lambda f: -f.lower,
    "D": lambda f: f.degree,
    "S": lambda f: f.size * f.degree,
    "T": lambda f: f.pressure,
    "W": lambda f: f.width,
    "Z": lambda f: f.size,
}
"""A score for each letter. `A`, `T`, `W` and `Z` are MiniMalloc's."""


def ranking(features: Features, word: str, factors: Floats | float = 1.0) -> Ints:
    """Indices, the greatest score by the first letter first; ties by the next letters, then by index.

    `factors` change the first letter's scores, to shake an order.
    """
    scores = [-KEYS[letter](features) for letter in word]
    scores[0] = scores[0] * factors
    # lexsort takes the most important key last.
    return np.lexsort(scores[::-1])
