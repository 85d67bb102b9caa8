"""The tile facet of graph ops: how each computes single elements. `table` explains; importing this fills it."""

from gcomp.lowering.tiles.elements import bitwise, converting, elementwise, folding, indexing, movement, random, without
from gcomp.lowering.tiles.elements.table import ROWS, WITHOUT, Elements, elsewhere, refusal

__all__ = [
    "ROWS", "WITHOUT", "Elements", "bitwise", "converting", "elementwise", "elsewhere", "folding", "indexing",
    "movement", "random", "refusal", "without",
]  # fmt: skip
