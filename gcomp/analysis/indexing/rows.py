"""Importing this fills the table of indexing maps."""

from __future__ import annotations

from gcomp.analysis.indexing import (
    constant,
    contraction,
    control,
    dynamic,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    random,
    reduction,
    sorting,
)

__all__ = [
    "constant",
    "contraction",
    "control",
    "dynamic",
    "elementwise",
    "indexing",
    "linalg",
    "movement",
    "normalization",
    "random",
    "reduction",
    "sorting",
]
