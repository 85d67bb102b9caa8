"""Products of tiles: sums over k in ascending order, one fused multiply-add each, kept in registers block by block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import BlockArgument

from gcomp.lowering.llvm import arithmetic, casts
from gcomp.lowering.llvm.fetching import LINE, fetch, fetch_stream
from gcomp.lowering.llvm.kernel import Kernel
from gcomp.lowering.llvm.lanes import Lanes, shuffle, vectorial, whole
from gcomp.lowering.llvm.tiles import Pieces, Stored, Tile, gather
from gcomp.lowering.llvm.transposing import Turned
from gcomp.lowering.llvm.words import WordProducts
from gcomp.lowering.llvm.writer import Index, stored_bytes, type_of
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.tile import WORD, element, static_shape

SUMS: Mapping[int, int] = {16: 28, 8: 12, 4: 24}
"""Lanes of a vector -> vectors of sums that registers hold beside factors."""
REGISTERS: Mapping[int, int] = {16: 32, 8: 16, 4: 32}
"""Lanes of a vector -> how many vectors registers hold."""
UNROLLED = 4
"""Terms that are added in one iteration, at most."""
MOST_BLOCKS = 2
"""Blocks of sums beside each other that are written one after the other; others are in a loop."""

Fetch = Callable[[str], None]
"""Fetches something at a term of a sum."""


def dots(k: Kernel, op: tile.DotOp) -> None:
    """Print tile.dot."""
    lhs, rhs, acc = (k.tiles[v] for v in op.operands)
    shape, dtype = static_shape(op.result), element(op.result)
    rows, vectors = block_of(shape[0], shape[1] // acc.width, SUMS[k.width])
    columns = vectors * acc.width
    for side in (lhs, rhs):
        side.prepare()
    if op.words is not None:
        left = _Words(k, lhs, acc.width)
    else:
        left = _Grouped(lhs, op.groups, shape[1]) if op.groups > 1 else _Left(lhs)
    if acc.is_small:
        pieces: list[Lanes] = [None] * acc.count  # type: ignore[list-item]
        per_row = acc.columns // acc.width
        ahead = _fetch_ahead(k, rhs, 0, 1) if isinstance(rhs, Turned) else _fetch_stream(k, rhs)
        for row in range(0, shape[0], rows):
            for column in range(0, shape[1], columns):
                fetch = ahead if row == column == 0 else None
                found = iter(_block(k, left, rhs, acc, row, column, rows, columns, fetch))
                for r in range(row, row + rows):
                    for c in range(column, column + columns, acc.width):
                        pieces[r * per_row + c // acc.width] = next(found)
        k.tiles[op.result] = Pieces(k.w, shape, dtype, k.width, pieces)
        return
    acc.prepare()
    target = acc if isinstance(acc, Stored) and _is_replaced(k, op, acc) else Stored(k.w, shape, dtype, k.width)

    def one(number: str, _: Sequence[str]) -> Sequence[str]:
        row = k.w.multiply(number, rows)
        ahead = _fetch_ahead(k, rhs, number, shape[0] // rows)

        def block(column: Index, _: Sequence[str] = ()) -> Sequence[str]:
            found = iter(_block(k, left, rhs, acc, row, column, rows, columns, ahead if column == 0 else None))
            for r in range(rows):
                for c in range(0, columns, acc.width):
                    target.put(k.w.add(row, r), k.w.add(column, c), next(found))
            return []

        if shape[1] <= MOST_BLOCKS * columns or op.groups > 1:
            for column in range(0, shape[1], columns):
                block(column)
        else:
            k.w.loop("0", str(shape[1]), columns, [], block)
        return []

    k.w.loop("0", str(shape[0] // rows), 1, [], one)
    k.tiles[op.result] = target


def _is_replaced(k: Kernel, op: tile.DotOp, acc: Stored) -> bool:
    """Whether the sums may be written where those lie that they are added to: a loop carries them, and nothing else
    reads them."""
    uses = [*op.acc.uses, *op.result.uses]
    return (
        acc.space in k.held
        and isinstance(op.acc, BlockArgument)
        and op.acc.owner is op.parent
        and len(uses) == 2
        and isinstance(last := uses[1].operation, tile.YieldOp)
        and last.parent is op.parent
        and op.acc.index == uses[1].index + 1
    )


def _fetch_ahead(k: Kernel, rhs: Tile, number: Index, blocks: int) -> Fetch | None:
    """Fetches what is read after a tile: a block's iterations bring the block's share of it."""
    following = rhs.following
    if following is None:
        return None
    w, step = k.w, _step(rhs, UNROLLED)
    iterations = -(-rhs.rows // step)
    return lambda term: fetch(
        w, following, w.add(w.multiply(number, iterations), w.divide(term, step)), blocks * iterations,
        near=isinstance(rhs, Turned),
    )  # fmt: skip


def _fetch_stream(k: Kernel, rhs: Tile) -> Fetch | None:
    """Fetches what is read a little later, where that is one stream through memory, of whole lines in each row."""
    following, per_row = rhs.following, rhs.columns * stored_bytes(rhs.dtype)
    if following is None or not following.continues or per_row % LINE:
        return None
    w, lines = k.w, per_row // LINE
    return lambda term: fetch_stream(w, following, w.multiply(term, lines), lines * UNROLLED)


def _step(rhs: Tile, most: int) -> int:
    """Terms that are added in one iteration: of what is transposed a whole block, read by whole rows."""
    return rhs.width if isinstance(rhs, Turned) and rhs.rows % rhs.width == 0 else most


def block_of(rows: int, vectors: int, most: int) -> tuple[int, int]:
    """Rows and vectors of a block, of which a tile has a whole number: such that most is done with what is loaded."""
    blocks = [
        (r, v)
        for r in range(1, min(rows, most) + 1) if rows % r == 0
        for v in range(1, most // r + 1) if vectors % v == 0
    ]  # fmt: skip
    return max(blocks, key=lambda block: (block[0] * block[1] / (block[0] + block[1]), block[0]))


class _Left:
    """The factors of a block's rows: of each, one for all columns."""

    def __init__(self, lhs: Tile) -> None:
        self.lhs, self.terms, self.unrolled = lhs, lhs.columns, UNROLLED

    def get(self, row: Index, columns: Sequence[Index], term: Index, width: int, dtype: str) -> Sequence[Lanes]:
        """What pieces of a row, which begin at these columns, are multiplied by."""
        return [casts.cast(self.lhs.w, self.lhs.get(row, term, 1), dtype).repeat(width)] * len(columns)


class _Grouped(_Left):
    """The factors of products side by side: columns of each of these have one."""

    def __init__(self, lhs: Tile, groups: int, columns: int) -> None:
        super().__init__(lhs)
        self.terms = self.unrolled = lhs.columns // groups
        self._columns = columns // groups
        self._read: dict[tuple[Index, int, int], tuple[Lanes, str]] = {}

    def get(self, row: Index, columns: Sequence[Index], term: Index, width: int, dtype: str) -> Sequence[Lanes]:
        return [self._factor(row, column, term, width, dtype) for column in columns]

    def _factor(self, row: Index, column: Index, term: Index, width: int, dtype: str) -> Lanes:
        w, lhs = self.lhs.w, self.lhs
        assert isinstance(column, int) and isinstance(term, int), "groups have few columns and terms"
        places = [(column + lane) // self._columns * self.terms + term for lane in range(width)]
        first = column // self._columns * self.terms
        if len(set(places)) == 1:
            found = lhs.get(row, places[0], 1)
        elif (count := places[-1] - term + self.terms - first) <= width:
            found = self._piece(row, first, count)
            places = [place - first for place in places]
            found = vectorial(found.dtype, width, shuffle(w, found.type, whole(w, found), "poison", places))
        else:
            found = gather(w, lhs, [(row, place) for place in places])
        found = casts.cast(w, found, dtype)
        return found.repeat(width) if found.is_uniform else found

    def _piece(self, row: Index, first: int, count: int) -> Lanes:
        """A piece of a row of factors, read once."""
        key = (row, first, count)
        if key not in self._read or not self.lhs.w.knows(self._read[key][1]):
            self._read[key] = self.lhs.get(row, first, count), self.lhs.w.mark()
        return self._read[key][0]


class _Words(_Left):
    """The factors of words of terms, all four of which are multiplied at once."""

    def __init__(self, k: Kernel, lhs: Tile, width: int) -> None:
        super().__init__(lhs)
        self.terms, self.width = lhs.columns // WORD, width
        self._words = WordProducts(k.w, k.words if width >= WORD else "", width)

    def add(
        self, rhs: Tile, sums: Sequence[Lanes], row: Index, column: Index, term: Index, count: int, rows: int,
        columns: int,
    ) -> list[Lanes]:  # fmt: skip
        """The sums of a block with some more words."""
        w, words, width, found = self.lhs.w, self._words, self.width, list(sums)
        places = [w.multiply(w.add(column, c), WORD) for c in range(0, columns, width)]
        for t in range(count):
            at = w.add(term, t)
            if t:
                w.keep_order()
            right = [words.right(rhs.get(at, place, WORD * width)) for place in places]
            for r in range(rows):
                left = words.left(self.lhs.get(w.add(row, r), w.multiply(at, WORD), WORD))
                for c, factor in enumerate(right):
                    n = r * len(right) + c
                    found[n] = words.multiply_add(left, factor, found[n])
        return found


def _block(
    k: Kernel, lhs: _Left, rhs: Tile, acc: Tile, row: Index, column: Index, rows: int, columns: int,
    ahead: Fetch | None = None,
) -> list[Lanes]:  # fmt: skip
    """The sums of some rows and columns. `ahead` is called in each iteration over terms."""
    w, width, terms = k.w, acc.width, lhs.terms
    starts = [acc.get(w.add(row, r), w.add(column, c), width) for r in range(rows) for c in range(0, columns, width)]
    step = min(_step(rhs, lhs.unrolled), terms)

    def add(sums: Sequence[Lanes], term: Index, count: int) -> list[Lanes]:
        found = list(sums)
        if isinstance(lhs, _Words):
            return lhs.add(rhs, found, row, column, term, count, rows, columns)
        places = [w.add(column, c) for c in range(0, columns, width)]
        turned = [rhs.get_rows(term, count, place, width) for place in places] if isinstance(rhs, Turned) else None
        for t in range(count):
            at = w.add(term, t)
            if t:
                w.keep_order()
            taken = [rhs.get(at, place, width) for place in places] if turned is None else [one[t] for one in turned]
            right = [casts.cast(w, factor, acc.dtype) for factor in taken]
            for r in range(rows):
                left = lhs.get(w.add(row, r), places, at, width, acc.dtype)
                for c, factor in enumerate(right):
                    n = r * len(right) + c
                    found[n] = _multiply_add(k, left[c], factor, found[n])
        return found

    if terms == step:
        return add(starts, 0, step)

    def body(term: str, names: Sequence[str]) -> Sequence[str]:
        sums = [vectorial(acc.dtype, width, name) for name in names]
        if ahead is not None:
            ahead(term)
        return [whole(w, lanes) for lanes in add(sums, term, step)]

    carried = [(type_of(acc.dtype, width), whole(w, start)) for start in starts]
    even = terms - terms % step
    names = w.loop("0", str(even), step, carried, body)
    return add([vectorial(acc.dtype, width, name) for name in names], even, terms - even)


def _multiply_add(k: Kernel, one: Lanes, other: Lanes, sum: Lanes) -> Lanes:
    """one * other + sum."""
    if sum.dtype in ("f32", "f64"):
        return arithmetic.apply(k.w, "fma", [one, other, sum])
    return arithmetic.apply(k.w, "add", [arithmetic.apply(k.w, "multiply", [one, other]), sum])


__all__ = ["dots"]
