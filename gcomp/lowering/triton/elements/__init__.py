"""The tile facet of graph ops: how each computes single elements. `table` explains; importing this fills it."""

from gcomp.lowering.triton.elements import elementwise, folding, indexing, movement
from gcomp.lowering.triton.elements.table import ROWS, WITHOUT, Elements, refusal

__all__ = ["ROWS", "WITHOUT", "Elements", "elementwise", "folding", "indexing", "movement", "refusal"]
