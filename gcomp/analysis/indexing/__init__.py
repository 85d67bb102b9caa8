"""Indexing maps: from an element of a result to the elements of each operand that it reads.

`operand_maps(op)` looks an op up in the table (`table`, `rows`); `compose` and `simplify` carry maps through several
ops; `maps` says what a map is. docs/guides/fusion.md shows their use.
"""

from __future__ import annotations

from gcomp.analysis.indexing import rows as rows  # fills the table
from gcomp.analysis.indexing.counting import Count, Strides, is_injective, stride_along, strides, touched_elements
from gcomp.analysis.indexing.evaluation import evaluate, footprint, relation
from gcomp.analysis.indexing.maps import (
    Condition,
    IndexingMap,
    compose,
    d,
    identity,
    is_broadcast,
    is_permutation,
    is_pointwise,
    join,
    r,
)
from gcomp.analysis.indexing.paths import join_maps, reads, through
from gcomp.analysis.indexing.simplify import simplify
from gcomp.analysis.indexing.table import MAPS, Maps, maps, operand_maps

__all__ = [
    "MAPS",
    "Condition",
    "Count",
    "IndexingMap",
    "Maps",
    "Strides",
    "compose",
    "d",
    "evaluate",
    "footprint",
    "identity",
    "is_broadcast",
    "is_injective",
    "is_permutation",
    "is_pointwise",
    "join",
    "join_maps",
    "maps",
    "operand_maps",
    "r",
    "reads",
    "relation",
    "simplify",
    "stride_along",
    "strides",
    "through",
    "touched_elements",
]
