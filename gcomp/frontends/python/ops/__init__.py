"""The vocabulary: operations with NumPy's names and meaning, one file per family.

Each is defined once over the IR builder, so that what runs at once and what is compiled cannot differ in meaning.
"""

from __future__ import annotations

from gcomp.frontends.python.ops import (
    arithmetic,
    contraction,
    control,
    creation,
    elementwise,
    indexing,
    movement,
    neural,
    random,
    reduction,
    sorting,
    windows,
)

__all__ = ["arithmetic", "contraction", "control", "creation", "elementwise", "indexing", "movement", "neural",
           "random", "reduction", "sorting", "windows"]  # fmt: skip
