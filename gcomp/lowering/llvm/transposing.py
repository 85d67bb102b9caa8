"""Matrices transposed: blocks of vectors that change places in registers.

Rows are read in parts of four lanes. A part lies beside those of the fourth row after it, the eighth, and so on, in a
vector as wide as the processor's; then lanes move within parts, which most processors do in one instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.ir import Operation

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
    if _is_added_once(k, op):
        k.tiles[op.result] = Turned(k, shape, dtype, found)
        return
    if _is_small(k, shape, side):
        _in_registers(k, op, found, side)
        return
    target = Stored(k.w, shape, dtype, k.width)
    found.prepare()

    def block(row: Index, column: Index) -> None:
        """The block of the result that begins at a row and a column."""
        for n, lanes in enumerate(turn(k.w, found, row, side, column, side)):
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


class Turned(Tile):
    """A matrix transposed as it is read, a few rows at a time, which nobody writes while it is read."""

    def __init__(self, k: Kernel, shape: Sequence[int], dtype: str, found: Tile) -> None:
        super().__init__(k.w, shape, dtype, k.width, [found])
        self._k, self._found = k, found
        self.following = found.following

    def get(self, row: Index, column: Index, lanes: int) -> Lanes:
        return _picked(self._k, self._found, row, column, lanes)

    def get_rows(self, row: Index, count: int, column: Index, lanes: int) -> list[Lanes]:
        """Elements side by side in each of some rows that follow each other."""
        if count % QUAD or lanes % QUAD:
            return [self.get(self.w.add(row, n), column, lanes) for n in range(count)]
        return turn(self.w, self._found, row, count, column, lanes)


def _is_added_once(k: Kernel, op: tile.TransposeOp) -> bool:
    """Whether a product of one row reads the result, once: it is transposed while sums are added to."""
    uses = list(op.result.uses)
    if len(uses) != 1 or not isinstance(user := uses[0].operation, tile.DotOp) or user.rhs is not op.result:
        return False
    is_one_block = static_shape(user.result)[0] == 1 and k.is_small(user.acc)
    return is_one_block and k.tiles[op.operand].is_in_memory and is_unwritten_until(op, user)


def is_unwritten_until(op: Operation, user: Operation) -> bool:
    """Whether a later op of the same block reads what memory holds at an op: nothing is written in between."""
    following = op.next_op
    while following is not None and following is not user:
        if isinstance(following, (tile.StoreOp, tile.AtomicOp, tile.ForOp)):
            return False
        following = following.next_op
    return following is user


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
            for n, lanes in enumerate(turn(k.w, found, row, side, column, side)):
                pieces[(row + n) * per_row + column // side] = lanes
    k.tiles[op.result] = Pieces(k.w, shape, element(op.result), k.width, pieces)


def turn(w: Writer, found: Tile, row: Index, count: int, column: Index, lanes: int) -> list[Lanes]:
    """Rows of the result, of the source's columns: multiples of four rows and lanes."""
    if count == lanes:
        return _square(w, [found.get(w.add(column, n), row, count) for n in range(lanes)])
    rows: list[Lanes] = []
    for first in range(0, count, QUAD):
        at = w.add(row, first)
        rows += _quad(w, [_fourth(w, found, w.add(column, n), at, lanes) for n in range(QUAD)])
    return rows


def _square(w: Writer, rows: Sequence[Lanes]) -> list[Lanes]:
    """As many vectors as lanes: first lanes move within parts, then parts between vectors."""
    quads = [_quad(w, rows[n : n + QUAD]) for n in range(0, len(rows), QUAD)]
    found = [_parted(w, [quad[n] for quad in quads]) for n in range(QUAD)]
    return [found[n % QUAD][n // QUAD] for n in range(len(rows))]


def _parted(w: Writer, rows: Sequence[Lanes]) -> list[Lanes]:
    """As many vectors as parts: part j of row i becomes part i of row j."""
    if len(rows) == 1:
        return list(rows)
    count, dtype, type = rows[0].count, rows[0].dtype, rows[0].type

    def joined(one: Lanes, other: Lanes, first: int) -> Lanes:
        """Every second part of a vector, and then of another."""
        places = [n + lane for n in range(first * QUAD, 2 * count, 2 * QUAD) for lane in range(QUAD)]
        return vectorial(dtype, count, shuffle(w, type, whole(w, one), whole(w, other), places))

    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    even, odd = ([joined(one, other, first) for one, other in pairs] for first in range(2))
    return [half for both in zip(_parted(w, even), _parted(w, odd), strict=True) for half in both]


def _fourth(w: Writer, found: Tile, row: Index, column: Index, lanes: int) -> Lanes:
    """Four lanes of a row, of the fourth row after it, and so on, as the parts of a vector."""
    parts = [found.get(w.add(row, n), column, QUAD) for n in range(0, lanes, QUAD)]
    while len(parts) > 1:
        parts = [_beside(w, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _beside(w: Writer, one: Lanes, other: Lanes) -> Lanes:
    """The lanes of one vector and then of another, of the same type."""
    joined = shuffle(w, one.type, whole(w, one), whole(w, other), range(2 * one.count))
    return vectorial(one.dtype, 2 * one.count, joined)


def _quad(w: Writer, rows: Sequence[Lanes]) -> list[Lanes]:
    """Four vectors whose parts are square blocks: lane j of row i of a block becomes lane i of its row j."""
    dtype, count, type = rows[0].dtype, rows[0].count, rows[0].type
    a, b, c, e = (whole(w, row) for row in rows)

    def by_parts(one: str, other: str, picked: Sequence[int]) -> str:
        """The same lanes of each part; those from QUAD on are the second's."""
        places = [p + n % QUAD + (count if n >= QUAD else 0) for p in range(0, count, QUAD) for n in picked]
        return shuffle(w, type, one, other, places)

    low, high = by_parts(a, b, (0, 4, 1, 5)), by_parts(a, b, (2, 6, 3, 7))
    other_low, other_high = by_parts(c, e, (0, 4, 1, 5)), by_parts(c, e, (2, 6, 3, 7))
    found = [
        by_parts(low, other_low, (0, 1, 4, 5)), by_parts(low, other_low, (2, 3, 6, 7)),
        by_parts(high, other_high, (0, 1, 4, 5)), by_parts(high, other_high, (2, 3, 6, 7)),
    ]  # fmt: skip
    return [vectorial(dtype, count, value) for value in found]


__all__ = ["MOST_ROWS", "QUAD", "is_unwritten_until", "reads_by_number", "transposes", "turn"]
