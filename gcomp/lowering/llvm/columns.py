"""Tiles of one column: a number for each row, as statistics of rows are. They lie in vectors along the rows.

A piece of a row of one element would be a scalar, and what is computed of 32 rows 32 times as much code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from gcomp.lowering.llvm.lanes import Lanes
from gcomp.lowering.llvm.tiles import Stored, Tile, View, gather
from gcomp.lowering.llvm.writer import Index, Writer


def is_column(shape: Sequence[int]) -> bool:
    """Whether a shape has one column, of several rows."""
    return len(shape) > 1 and shape[-1] == 1 and prod(shape) > 1


class Column(Tile):
    """A tile of one column, whose elements are those of a tile with one row."""

    def __init__(self, w: Writer, shape: Sequence[int], width: int, flat: Tile) -> None:
        super().__init__(w, shape, flat.dtype, width, [flat])
        self.flat = flat

    def get(self, row: Index, column: Index, lanes: int) -> Lanes:
        return self.flat.get(0, row, lanes)


def flat(tile: Tile, width: int) -> Tile:
    """A tile of one column as one with one row, in vectors of `width` lanes; other tiles as they are."""
    if not is_column(tile.shape):
        return tile
    if isinstance(tile, Column):
        return tile.flat
    read = read_flat(tile)
    return View(tile.w, (tile.rows,), tile.dtype, width, lambda _, column, lanes: read(column, lanes), [tile])


def read_flat(tile: Tile) -> Callable[[Index, int], Lanes]:
    """Elements of a tile of one column, or of one element, that are neighbours along the rows."""
    if prod(tile.shape) == 1:
        return lambda _, lanes: tile.get(0, 0, 1).repeat(lanes)
    if isinstance(tile, Column):
        return lambda row, lanes: tile.flat.get(0, row, lanes)
    if isinstance(tile, Stored):
        return lambda row, lanes: tile.get(row, 0, lanes)
    return lambda row, lanes: gather(tile.w, tile, [(tile.w.add(row, lane), 0) for lane in range(lanes)])


__all__ = ["Column", "flat", "is_column", "read_flat"]
