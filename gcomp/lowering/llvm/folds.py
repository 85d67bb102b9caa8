"""Reductions and scans: halves of a dimension are combined until one element is left; each with those before it.

The order is the evaluator's, whatever the width of vectors is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.ir import Block, SSAValue

from gcomp.lowering.llvm import arithmetic, casts
from gcomp.lowering.llvm.columns import Column
from gcomp.lowering.llvm.kernel import Kernel
from gcomp.lowering.llvm.lanes import Lanes, constant, position, shuffle, uniform, vectorial, whole
from gcomp.lowering.llvm.tiles import MOST_PIECES, Pieces, Stored, Tile, fill, store
from gcomp.lowering.llvm.transposing import QUAD
from gcomp.lowering.llvm.writer import Index, Writer, scalar_type, vector
from gcomp.lowering.tiles import combining, tile
from gcomp.lowering.tiles.tile import element, static_shape

T = TypeVar("T")


def region(w: Writer, block: Block, arguments: Sequence[Lanes]) -> list[Lanes]:
    """A region on scalars, on lanes."""
    return _block(w, block, dict(zip(block.args, arguments, strict=True)), arguments[0].count)


def _block(w: Writer, block: Block, values: dict[SSAValue, Lanes], count: int) -> list[Lanes]:
    """What a block yields, of values that are known before it."""
    for op in block.ops:
        operands = [values[v] for v in op.operands]
        match op:
            case tile.YieldOp():
                return operands
            case tile.ConstantOp():
                values[op.result] = constant(op.value.splat(), element(op.result), count)
            case tile.ElementwiseOp():
                values[op.result] = arithmetic.apply(w, op.function_name, operands)
            case tile.CastOp():
                values[op.result] = casts.cast(w, operands[0], element(op.result))
            case tile.BitcastOp():
                values[op.result] = casts.bitcast(w, operands[0], element(op.result))
            case tile.BroadcastOp() | tile.ReshapeOp():
                values[op.results[0]] = operands[0]
            case tile.ForOp():
                values.update(zip(op.results, _loop(w, op, values, count), strict=True))
            case _:
                raise LookupError(f"{op.name} in a region on scalars")
    return []


def _loop(w: Writer, op: tile.ForOp, values: dict[SSAValue, Lanes], count: int) -> list[Lanes]:
    """A loop in a region, which carries lanes in registers."""
    lower, upper, starts = values[op.lower], values[op.upper], [values[v] for v in op.carried]
    kind = element(op.lower)
    dtypes = [start.dtype for start in starts]

    def body(index: str, names: Sequence[str]) -> Sequence[str]:
        values[op.block.args[0]] = uniform(kind, index, count)
        for argument, dtype, name in zip(op.block.args[1:], dtypes, names, strict=True):
            values[argument] = vectorial(dtype, count, name)
        return [whole(w, lanes) for lanes in _block(w, op.block, values, count)]

    carried = [(start.type, whole(w, start)) for start in starts]
    names = w.loop(str(lower.base), str(upper.base), op.stride, carried, body, type=scalar_type(kind))
    return [vectorial(dtype, count, name) for dtype, name in zip(dtypes, names, strict=True)]


def reduces(k: Kernel, op: combining.ReduceOp) -> None:
    """Print tile.reduce."""
    tiles = [k.tiles[v] for v in op.operands]
    axis, shape = op.axis, static_shape(op.operands[0])
    if _is_any(op, tiles):
        k.tiles[op.results[0]] = _any(k.w, tiles[0], static_shape(op.results[0]))
        return
    if op.chain_count:
        tiles = _combine_chains(k, op, tiles)
        shape = tiles[0].shape
    across = axis == len(shape) - 1 and len(shape) > 1 and _lie_across(k, tiles)
    while shape[axis] > (ROW_VECTORS * k.width if across else 1):
        shape = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
        tiles = _combine_halves(k, op.block, tiles, axis, shape)
    if across:
        tiles = _reduce_rows(k, op.block, tiles)
    k.tiles.update(zip(op.results, tiles, strict=True))


def _is_any(op: combining.ReduceOp, tiles: Sequence[Tile]) -> bool:
    """Whether a reduction asks if one row of truth values, which registers hold, has one that is true."""
    found, *others = op.block.ops
    is_or = isinstance(found, tile.ElementwiseOp) and found.function_name == "or" and len(others) == 1
    (one, *more) = tiles
    is_row = one.columns > 1 == one.rows and op.axis == len(one.shape) - 1
    return is_or and not more and one.dtype == "i1" and one.is_small and is_row


def _any(w: Writer, found: Tile, shape: Sequence[int]) -> Tile:
    """Whether one of a row is true: its vectors' bits as a number."""
    mask = found.piece(0)
    for n in range(1, found.count):
        mask = arithmetic.apply(w, "or", [mask, found.piece(n)])
    bits = w.pure(f"bitcast {mask.type} {whole(w, mask)} to i{mask.count}")
    return Pieces(w, shape, "i1", 1, [uniform("i1", w.pure(f"icmp ne i{mask.count} {bits}, 0"))])


def _combine_chains(k: Kernel, op: combining.ReduceOp, tiles: Sequence[Tile]) -> Sequence[Tile]:
    """The elements of each chain combined, those of a few rows at a time in registers."""
    w, chains, first = k.w, op.chain_count, tiles[0]
    if op.axis != len(first.shape) - 1:
        raise LookupError(f"chains along dimension {op.axis} of {len(first.shape)}")
    width = min(k.width, chains)
    places = range(0, chains, width)
    for source in tiles:
        source.prepare()

    def elements(rows: Sequence[Index], column: Index) -> list[Lanes]:
        return [t.get(row, w.add(column, c), width) for row in rows for c in places for t in tiles]

    def sums(rows: Sequence[Index]) -> list[Lanes]:
        """Of each row, each vector of its chains, each operand."""
        beside = _beside(op, tiles, len(rows) * len(places))
        starts = [lanes for n in range(beside) for lanes in elements(rows, n * chains)]
        carried = [(start.type, whole(w, start)) for start in starts]
        end = first.columns - first.columns % (beside * chains)

        def body(column: str, names: Sequence[str]) -> Sequence[str]:
            one = [vectorial(start.dtype, width, name) for start, name in zip(starts, names, strict=True)]
            other = [lanes for n in range(beside) for lanes in elements(rows, w.add(column, n * chains))]
            return [whole(w, lanes) for lanes in combined(one, other)]

        def combined(one: Sequence[Lanes], other: Sequence[Lanes]) -> list[Lanes]:
            count = len(tiles)
            pairs = [(one[n : n + count], other[n : n + count]) for n in range(0, len(one), count)]
            return [lanes for a, b in pairs for lanes in region(w, op.block, [*a, *b])]

        names = w.loop(str(beside * chains), str(end), beside * chains, carried, body)
        found = [vectorial(start.dtype, width, name) for start, name in zip(starts, names, strict=True)]
        while len(found) > len(starts) // beside:
            found = combined(found[: len(found) // 2], found[len(found) // 2 :])
        for column in range(end, first.columns, chains):
            found = combined(found, elements(rows, column))
        return found

    shape, count = (*first.shape[:-1], chains), len(tiles)
    together = max(n for n in range(1, MOST_TOGETHER + 1) if first.rows % n == 0)
    if first.rows * len(places) <= MOST_PIECES:
        found = [lanes for row in range(0, first.rows, together) for lanes in sums(range(row, row + together))]
        return [Pieces(w, shape, t.dtype, width, found[n::count]) for n, t in enumerate(tiles)]
    targets = [Stored(w, shape, t.dtype, width) for t in tiles]

    def some(row: str, _: Sequence[str]) -> Sequence[str]:
        rows = [w.add(row, n) for n in range(together)]
        pieces = iter(sums(rows))
        for at in rows:
            for column in places:
                for target in targets:
                    target.put(at, column, next(pieces))
        return []

    w.loop("0", str(first.rows), together, [], some)
    return targets


def _beside(op: combining.ReduceOp, tiles: Sequence[Tile], vectors: int) -> int:
    """How many times as many chains are combined beside each other, which is as good where the order changes no bit: a
    maximum takes a dozen cycles, in which others may begin. NaN are of one form wherever they are seen."""
    (inner, *others), (one, *more) = op.block.ops, tiles
    if more or len(others) != 1 or not isinstance(inner, tile.ElementwiseOp) or inner.function_name not in ORDERLESS:
        return 1
    if set(inner.operands) != set(op.block.args):
        return 1
    turns = one.columns // op.chain_count
    return next((n for n in (8, 4, 2) if vectors * n <= MOST_BESIDE and turns >= 2 * n), 1)


ORDERLESS = frozenset({"maximum", "minimum", "and", "or", "xor"})
"""Functions by which elements may be combined in any order."""
MOST_BESIDE = 8
"""Vectors of chains that are combined beside each other for that."""
MOST_TOGETHER = 4
"""Rows whose chains are combined at a time, at most."""

ROW_VECTORS = 8
"""Vectors of a row whose elements are combined in registers, at most; halves of longer rows are in memory before."""


def _lie_across(k: Kernel, tiles: Sequence[Tile]) -> bool:
    """Whether as many rows as vectors have lanes are reduced together."""
    return all(
        found.rows % k.width == 0 and found.columns >= k.width and found.dtype != "i1" and k.width >= QUAD
        for found in tiles
    )  # fmt: skip


def _reduce_rows(k: Kernel, block: Block, tiles: Sequence[Tile]) -> list[Tile]:
    """The one element that each row becomes, as a column.

    Of a row's vectors halves are combined until one is left; then of several rows' vectors those of half as many
    lanes each, side by side: the last vector has the element of each row.
    """
    w, width, first = k.w, k.width, tiles[0]
    order = _order(width)

    def one(row: Index, lane: int) -> list[Lanes]:
        """The vectors of a row that `lane` will be of."""
        at = w.add(row, lane)
        found = [[source.get(at, c, width) for source in tiles] for c in range(0, first.columns, width)]
        while len(found) > 1:
            half = len(found) // 2
            found = [region(w, block, [*a, *b]) for a, b in zip(found[:half], found[half:], strict=True)]
        return found[0]

    def group(row: Index) -> list[Lanes]:
        """The elements of as many rows as there are lanes."""
        found, taken = [one(row, lane) for lane in order], width
        while taken > 1:
            found = [
                region(w, block, [
                    *(_picked(w, a, b, taken, 0) for a, b in zip(x, y, strict=True)),
                    *(_picked(w, a, b, taken, taken // 2) for a, b in zip(x, y, strict=True)),
                ])
                for x, y in zip(found[::2], found[1::2], strict=True)
            ]  # fmt: skip
            taken //= 2
        return found[0]

    types = [((first.rows,), found.dtype) for found in tiles]
    if first.count <= MOST_PIECES:
        groups = [group(row) for row in range(0, first.rows, width)]
        flat = [Pieces(w, shape, dtype, width, [g[n] for g in groups]) for n, (shape, dtype) in enumerate(types)]
    else:
        flat = [Stored(w, shape, dtype, width) for shape, dtype in types]
        fill(flat, tiles, lambda _, row, lanes: group(row), few=1)
    return [Column(w, (*found.shape[:-1], 1), width, one) for found, one in zip(tiles, flat, strict=True)]


def _sides(lanes: Sequence[T], others: Sequence[T], taken: int, first: int) -> list[T]:
    """Half of the lanes of each row of two vectors, which have `taken` of each: those from `first` on.

    Within parts of four lanes, where processors move lanes in one instruction.
    """
    span = max(taken, QUAD)
    found: list[T] = []
    for part in range(0, len(lanes), span):
        for side in (lanes, others):
            for row in range(part, part + span, taken):
                found += side[row + first : row + first + taken // 2]
    return found


def _order(width: int) -> list[int]:
    """Of which row each of the vectors is that are combined, so that the last vector has the rows in order."""
    found = [[n] * width for n in range(width)]
    taken = width
    while taken > 1:
        found = [_sides(x, y, taken, 0) for x, y in zip(found[::2], found[1::2], strict=True)]
        taken //= 2
    return [found[0].index(n) for n in range(width)]


def _picked(w: Writer, one: Lanes, other: Lanes, taken: int, first: int) -> Lanes:
    """Half of the lanes of each row of two vectors."""
    if one.is_uniform and other.is_uniform and one.base == other.base:
        return one
    count = one.count
    places = _sides(range(count), range(count, 2 * count), taken, first)
    return vectorial(one.dtype, count, shuffle(w, one.type, whole(w, one), whole(w, other), places))


def _combine_halves(k: Kernel, block: Block, tiles: Sequence[Tile], axis: int, shape: Sequence[int]) -> Sequence[Tile]:
    """Each element of the first half along an axis, combined with its partner in the second."""
    half, last = shape[axis], axis == len(shape) - 1

    def read(row: Index, column: Index, lanes: int) -> list[Lanes]:
        places = k.indices(row, column, shape)
        sides: list[Lanes] = []
        for offset in (0, half):
            moved = [k.w.add(place, offset) if n == axis else place for n, place in enumerate(places)]
            own = k.row_of(moved, tiles[0].shape)
            at = moved[-1] if last else column
            sides += [found.get(own, at, lanes) for found in tiles]
        return region(k.w, block, sides)

    return k.together([(shape, found.dtype) for found in tiles], read, tiles)


def scans(k: Kernel, op: combining.ScanOp) -> None:
    """Print tile.scan: in steps of 1, 2, 4, ... elements, each in memory, or of rows that registers hold there."""
    shape = static_shape(op.operands[0])
    if op.axis == len(shape) - 1 and all(k.tiles[v].is_small for v in op.operands):
        _scan_in_registers(k, op, [k.tiles[v] for v in op.operands])
        return
    tiles: list[Stored] = [store(k.tiles[v]) for v in op.operands]
    axis, distance = op.axis, 1
    while distance < shape[axis]:
        following = [Stored(k.w, shape, found.dtype, k.width) for found in tiles]
        _step(k, op, tiles, following, distance)
        tiles = following
        distance *= 2
    k.tiles.update(zip(op.results, tiles, strict=True))


def _scan_in_registers(k: Kernel, op: combining.ScanOp, tiles: Sequence[Tile]) -> None:
    """The scan of tiles whose rows lie along the last dimension, piece by piece."""
    first = tiles[0]
    width, per_row = first.width, first.columns // first.width
    found: list[list[Lanes]] = [[] for _ in tiles]
    for row in range(first.rows):
        pieces = [[t.get(row, p * width, width) for p in range(per_row)] for t in tiles]
        distance = 1
        while distance < first.columns:
            pieces = _step_in_registers(k.w, op, pieces, distance)
            distance *= 2
        for own, more in zip(found, pieces, strict=True):
            own += more
    for result, source, own in zip(op.results, tiles, found, strict=True):
        k.tiles[result] = Pieces(k.w, source.shape, source.dtype, k.width, own)


def _step_in_registers(
    w: Writer, op: combining.ScanOp, pieces: Sequence[Sequence[Lanes]], distance: int
) -> list[list[Lanes]]:  # fmt: skip
    """Each element of a row, of which each operand has pieces, combined with the one at a distance, if there is one."""
    width, count = pieces[0][0].count, len(pieces[0])
    sign = -1 if op.reversed else 1
    results: list[list[Lanes]] = [[] for _ in pieces]
    for p in range(count):
        own = [row[p] for row in pieces]
        if distance >= width:
            other = p - sign * distance // width
            found = region(w, op.block, [*(row[other] for row in pieces), *own]) if 0 <= other < count else own
        else:
            other = p - sign
            has_other = 0 <= other < count
            places = [lane - sign * distance for lane in range(width)]
            # Lanes of the piece beside this one follow its own; one that has no other element takes itself, and stays.
            taken = [n if 0 <= n < width else n % width + width if has_other else k for k, n in enumerate(places)]
            before = [_from_two(w, row[p], row[other] if has_other else row[p], taken) for row in pieces]
            found = region(w, op.block, [*before, *own])
            if not has_other:
                kept = [width + k if 0 <= n < width else k for k, n in enumerate(places)]
                found = [_from_two(w, x, y, kept) for x, y in zip(own, found, strict=True)]
        for result, lanes in zip(results, found, strict=True):
            result.append(lanes)
    return results


def _from_two(w: Writer, one: Lanes, other: Lanes, places: Sequence[int]) -> Lanes:
    """Lanes of two vectors, by their places: the second's follow the first's."""
    if one.count == 1:
        return (one, other)[places[0]]
    return vectorial(one.dtype, one.count, shuffle(w, one.type, whole(w, one), whole(w, other), places))


def _step(k: Kernel, op: combining.ScanOp, tiles: Sequence[Stored], targets: Sequence[Stored], distance: int) -> None:
    """One step of a parallel scan: combine each element with the one at a distance before (or after) it, if any."""
    shape, axis, w = static_shape(op.operands[0]), op.axis, k.w
    inner = 1
    for size in shape[axis + 1 :]:
        inner *= size
    offset = distance * inner * (1 if op.reversed else -1)
    size = shape[axis]

    def read(row: Index, column: Index, lanes: int) -> list[Lanes]:
        own = [found.get(row, column, lanes) for found in tiles]
        place = k.indices(row, column, shape)[axis]
        together = axis != len(shape) - 1 or distance >= lanes
        if together and isinstance(place, int):
            if place >= size - distance if op.reversed else place < distance:
                return own
            return region(w, op.block, [*(found.near(row, column, offset, lanes) for found in tiles), *own])
        # Lanes that have no other element read what lies there, and stay: never further away than a vector is wide.
        at = position(w, place, lanes, stride=int(not together))
        bound = _same(size - distance if op.reversed else distance, 1 if together else lanes)
        kind = vector("i64", 1 if together else lanes)
        code = "sge" if op.reversed else "slt"
        test = w.pure(f"icmp {code} {kind} {at.base if together else whole(w, at)}, {bound}")
        if together:
            moved = w.pure(f"select i1 {test}, i64 0, i64 {offset}")
            before = [found.load_from(row, column, moved, lanes) for found in tiles]
        else:
            before = [found.near(row, column, offset, lanes) for found in tiles]
        found = region(w, op.block, [*before, *own])
        picks = "i1" if together else vector("i1", lanes)
        return [
            vectorial(o.dtype, lanes, w.pure(
                f"select {picks} {test}, {o.type} {whole(w, o)}, {o.type} {whole(w, f)}"
            )) for o, f in zip(own, found, strict=True)
        ]  # fmt: skip

    fill(targets, tiles, read)


def _same(number: int, lanes: int) -> str:
    return str(number) if lanes == 1 else f"splat (i64 {number})"


__all__ = ["reduces", "region", "scans"]
