"""Sorting: each element depends on all of its row."""

from __future__ import annotations

from gcomp.analysis.indexing.maps import IndexingMap, coordinates, r
from gcomp.analysis.indexing.table import Maps, maps
from gcomp.dims import Size
from gcomp.ir import chlo
from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import shape_of


@maps(hlo.SortOp)
def sort(op: hlo.SortOp) -> list[Maps]:
    """The rows of all inputs are sorted together."""
    shape = shape_of(op.operands[0])
    row: Maps = [_row(shape, shape, op.value("dimension") % max(len(shape), 1))] * len(op.operands)
    return [row] * len(op.operands)


@maps(chlo.TopKOp)
def top_k(op: chlo.TopKOp) -> list[Maps]:
    """A row is along the last dimension."""
    shape = shape_of(op.operand)
    found = _row(shape_of(op.values), shape, len(shape) - 1)
    return [[found], [found]]


def _row(domain: tuple[Size, ...], shape: tuple[Size, ...], dimension: int) -> IndexingMap:
    """The elements along one dimension; which of them is the result's is data."""
    own = coordinates(domain)
    if not shape or shape[dimension] == 1:
        return IndexingMap(domain, shape, own)
    indices = (*own[:dimension], r(0), *own[dimension + 1 :])
    return IndexingMap(domain, shape, indices, (shape[dimension],)).loosen(dimension)
