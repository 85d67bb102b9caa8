"""Matrices transposed: square blocks of vectors that change places in registers.

Of rows that are vectors of n lanes, n at a time become n columns: first within parts of four lanes, which most
processors move among in one instruction, and then the parts change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from gcomp.lowering.llvm.kernel import Kernel
from gcomp.lowering.llvm.lanes import Lanes, shuffle, vectorial, whole
from gcomp.lowering.llvm.tiles import MOST_PIECES, Pieces, Stored, Tile, gather
from gcomp.lowering.llvm.writer import Index, Writer
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.tile import element, static_shape

QUAD = 4
"""Lanes of a part."""
MOST_ROWS = 32
"""Rows that are read by their numbers, at most; those of higher matrices have numbers that the kernel computes."""


def reads_by_number(k: Kernel, op: tile.TransposeOp) -> bool:
    """Whether the rows that a transposition reads are known by their numbers when it is printed."""
    shape = static_shape(op.result)
    side = gcd(k.width, *shape)
    if side < QUAD:
        return k.is_small(op.result)
    return _is_small(k, shape, side) or shape[1] <= MOST_ROWS


def _is_small(k: Kernel, shape: Sequence[int], side: int) -> bool:
    """Whether registers hold a result, in pieces that are rows of blocks."""
    return shape[0] * shape[1] // side <= MOST_PIECES and side == min(k.width, shape[1])


def transposes(k: Kernel, op: tile.TransposeOp) -> None:
    """Print tile.transpose."""
    found, shape, dtype = k.tiles[op.operand], static_shape(op.result), element(op.result)
    side = gcd(k.width, *shape)
    if side < QUAD:
        k.compute(op.result, lambda row, column, lanes: _picked(k, found, row, column, lanes), [found])
        return
    if _is_small(k, shape, side):
        _in_registers(k, op, found, side)
        return
    target = Stored(k.w, shape, dtype, k.width)
    found.prepare()

    def block(row: Index, column: Index) -> None:
        """The block of the result that begins at a row and a column."""
        for n, lanes in enumerate(_block(k.w, found, row, column, side)):
            target.put(k.w.add(row, n), column, lanes)

    def down(number: str, _: Sequence[str]) -> Sequence[str]:
        row = k.w.multiply(number, side)
        if shape[1] <= MOST_ROWS:
            for column in range(0, shape[1], side):
                block(row, column)
        else:
            k.w.loop("0", str(shape[1] // side), 1, [], lambda n, _: across(row, n))
        return []

    def across(row: Index, number: str) -> Sequence[str]:
        block(row, k.w.multiply(number, side))
        return []

    k.w.loop("0", str(shape[0] // side), 1, [], down)
    target.following = found.following
    k.tiles[op.result] = target


def _picked(k: Kernel, found: Tile, row: Index, column: Index, lanes: int) -> Lanes:
    """Elements of a column, one by one."""
    return gather(k.w, found, [(k.w.add(column, lane), row) for lane in range(lanes)])


def _in_registers(k: Kernel, op: tile.TransposeOp, found: Tile, side: int) -> None:
    """The result as pieces."""
    shape = static_shape(op.result)
    per_row = shape[1] // side
    pieces: list[Lanes] = [None] * (shape[0] * per_row)  # type: ignore[list-item]
    for row in range(0, shape[0], side):
        for column in range(0, shape[1], side):
            for n, lanes in enumerate(_block(k.w, found, row, column, side)):
                pieces[(row + n) * per_row + column // side] = lanes
    k.tiles[op.result] = Pieces(k.w, shape, element(op.result), k.width, pieces)


def _block(w: Writer, found: Tile, row: Index, column: Index, side: int) -> list[Lanes]:
    """Rows of a square block of the result, of the source's columns."""
    return transposed(w, [found.get(w.add(column, n), row, side) for n in range(side)])


def transposed(w: Writer, rows: Sequence[Lanes]) -> list[Lanes]:
    """As many vectors as each has lanes, a power of two of at least four: lane j of row i becomes lane i of row j."""
    count, dtype = len(rows), rows[0].dtype
    type = rows[0].type
    values = [whole(w, row) for row in rows]

    def by_parts(a: str, b: str, picked: Sequence[int]) -> str:
        """The same lanes of each part; those from QUAD on are the second's."""
        places = [p + n % QUAD + (count if n >= QUAD else 0) for p in range(0, count, QUAD) for n in picked]
        return shuffle(w, type, a, b, places)

    for first in range(0, count, QUAD):
        a, b, c, e = values[first : first + QUAD]
        low, high = by_parts(a, b, (0, 4, 1, 5)), by_parts(a, b, (2, 6, 3, 7))
        other_low, other_high = by_parts(c, e, (0, 4, 1, 5)), by_parts(c, e, (2, 6, 3, 7))
        values[first : first + QUAD] = [
            by_parts(low, other_low, (0, 1, 4, 5)), by_parts(low, other_low, (2, 3, 6, 7)),
            by_parts(high, other_high, (0, 1, 4, 5)), by_parts(high, other_high, (2, 3, 6, 7)),
        ]  # fmt: skip
    distance = QUAD
    while distance < count:
        for n in range(count):
            if n & distance:
                continue
            a, b = values[n], values[n + distance]
            low = [lane if not lane & distance else lane - distance + count for lane in range(count)]
            high = [lane + distance if not lane & distance else lane + count for lane in range(count)]
            values[n], values[n + distance] = shuffle(w, type, a, b, low), shuffle(w, type, a, b, high)
        distance *= 2
    return [vectorial(dtype, count, value) for value in values]


__all__ = ["MOST_ROWS", "reads_by_number", "transposed", "transposes"]
