"""Loads and stores: neighbours as vectors, single elements as scalars, everything else one lane at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd, prod

from xdsl.ir import SSAValue

from gcomp.lowering.llvm import arithmetic
from gcomp.lowering.llvm.columns import read_flat
from gcomp.lowering.llvm.fetching import LINE, Following
from gcomp.lowering.llvm.kernel import FEW, Kernel
from gcomp.lowering.llvm.lanes import Lanes, constant, part, position, shuffle, splat, vectorial, whole
from gcomp.lowering.llvm.positions import advance, multiple, rise
from gcomp.lowering.llvm.tiles import (
    MOST_PIECES,
    Pieces,
    Read,
    Stored,
    Tile,
    View,
    byte,
    each,
    gather,
    read,
    store,
    truth,
    write,
)
from gcomp.lowering.llvm.transposing import MOST_ROWS, QUAD, is_unwritten_until, reads_by_number, turn
from gcomp.lowering.llvm.writer import Index, Writer, stored_bytes, stored_type, suffix, type_of, vector
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.descriptors import DescribeOp, LoadBoxOp
from gcomp.lowering.tiles.tile import element, static_shape

KNOWN = (tile.BroadcastOp, tile.CastOp, tile.ConstantOp, tile.ElementwiseOp, tile.IotaOp, tile.ReshapeOp)
"""Ops whose results are known where their operands are."""

MOST_UNROLLED = 64
"""Ops on vectors that are computed for what a kernel stores, at most, where that is no loop."""

MOST_APART = 4
"""How far from each other lanes are, at most, that are written as parts of vectors."""

VECTORS = (16, 32, 64)
"""Bytes that a processor writes past its caches at a time."""

Where = Callable[[Index], str]
"""Of a row: where it begins."""


def _memory_type(dtype: str) -> str:
    """The type whose values memory holds: truth values are bytes."""
    return "i8" if dtype == "i1" else dtype


def address(w: Writer, buffer: str, dtype: str, offset: Lanes) -> str:
    """Where the first lane's element lies, or the addresses of all lanes as a vector."""
    type = stored_type(dtype)
    if offset.base is not None and (offset.is_uniform or offset.stride == 1):
        return w.pure(f"getelementptr {type}, ptr {buffer}, {type_of(offset.dtype, 1)} {offset.base}")
    return w.pure(f"getelementptr {type}, ptr {buffer}, {offset.type} {whole(w, offset)}")


def _pointers(contiguous: bool, count: int) -> str:
    """How intrinsics name one address, or one for each lane."""
    return "p0" if contiguous else f"v{count}p0"


def load(k: Kernel, buffer: str, dtype: str, offset: Lanes, mask: Lanes | None) -> Lanes:
    """Elements at offsets; 0 where the mask is false."""
    w, count = k.w, offset.count
    if mask is not None and mask.is_uniform and mask.number is not None:
        if not mask.number:
            return constant(0, dtype, count)
        mask = None
    if offset.is_uniform and (mask is None or mask.is_uniform):
        return _load_one(k, buffer, dtype, offset, mask).repeat(count)
    contiguous = offset.base is not None and offset.stride == 1
    if contiguous and mask is None:
        return read(w, address(w, buffer, dtype, offset), dtype, count)
    if mask is None and (near := _near(w, buffer, dtype, offset)) is not None:
        return near
    where = address(w, buffer, dtype, offset)
    held = _memory_type(dtype)
    type, bytes = type_of(held, count), stored_bytes(dtype)
    masks = "splat (i1 true)" if mask is None else whole(w, mask)
    pointer = "ptr" if contiguous else vector("ptr", count)
    if not contiguous and offset.is_uniform:
        where = splat(w, "ptr", where, count)
    name = f"llvm.masked.{'load' if contiguous else 'gather'}.{suffix(held, count)}.{_pointers(contiguous, count)}"
    w.declare(name, type, [pointer, vector("i1", count), type])
    found = w.value(
        f"call {type} @{name}({pointer} align {bytes} {where}, {vector('i1', count)} {masks}, {type} zeroinitializer)"
    )
    return vectorial(dtype, count, truth(w, found, count) if dtype == "i1" else found)


def _load_one(k: Kernel, buffer: str, dtype: str, offset: Lanes, mask: Lanes | None) -> Lanes:
    """One element; where the mask is false, a zero is read that lies on the stack."""
    w = k.w
    where = address(w, buffer, dtype, offset)
    if mask is None:
        return read(w, where, dtype, 1)
    chosen = w.pure(f"select i1 {mask.base}, ptr {where}, ptr {k.zero}")
    return read(w, chosen, dtype, 1)


def _near(w: Writer, buffer: str, dtype: str, offset: Lanes) -> Lanes | None:
    """Elements of a stretch of no more than two vectors, in any order and some of them several times: it is read once,
    and they are picked. The second vector ends with the last that is wanted, since nothing beyond need be memory.

    None where they lie further from each other, or nobody knows how far.
    """
    if offset.base is None or dtype == "i1" or offset.count == 1:
        return None
    first, count, item = min(offset.distances), offset.count, stored_bytes(dtype)
    places = [distance - first for distance in offset.distances]
    where = w.place(address(w, buffer, dtype, offset.first), first, item)
    if (stretch := max(places) + 1) <= count:
        found = read(w, where, dtype, stretch)
        picked = shuffle(w, vector(stored_type(dtype), stretch), whole(w, found), "poison", places)
        return vectorial(dtype, count, picked)
    if (behind := stretch - count) > count:
        return None
    one, other = (whole(w, read(w, w.place(where, n, item), dtype, count)) for n in (0, behind))
    places = [place if place < count else place - behind + count for place in places]
    return vectorial(dtype, count, shuffle(w, vector(stored_type(dtype), count), one, other, places))


def put(
    k: Kernel, buffer: str, offset: Lanes, value: Lanes, mask: Lanes | None, *, streamed: bool = False
) -> None:  # fmt: skip
    """Write elements where the mask is true; `streamed` ones past the caches, to an address of a multiple of theirs."""
    w, dtype, count = k.w, value.dtype, value.count
    if mask is not None and mask.is_uniform and mask.number is not None:
        if not mask.number:
            return
        mask = None
    if offset.steps is not None and mask is None:
        for first, lanes in _runs(offset.steps):
            put(k, buffer, part(w, offset, first, lanes), part(w, value, first, lanes), None)
        return
    where = address(w, buffer, dtype, offset)
    contiguous = offset.base is not None and (offset.stride == 1 or count == 1)
    if contiguous and mask is not None and mask.is_uniform:
        # Where nothing is to be written, it is written to the stack.
        where, mask = w.pure(f"select i1 {mask.base}, ptr {where}, ptr {k.nowhere}"), None
    if contiguous and mask is None:
        write(w, where, value, streamed=streamed)
        return
    is_near = 0 < offset.stride <= MOST_APART
    if offset.base is not None and offset.stride and dtype != "i1" and (mask is None or is_near):
        _put_apart(w, address(w, buffer, dtype, offset.first), offset.stride, value, mask)
        return
    found = byte(w, whole(w, value), count) if dtype == "i1" else whole(w, value)
    held = _memory_type(dtype)
    type, bytes = type_of(held, count), stored_bytes(dtype)
    masks = "splat (i1 true)" if mask is None else whole(w, mask)
    pointer = "ptr" if contiguous else vector("ptr", count)
    if not contiguous and offset.is_uniform:
        where = splat(w, "ptr", where, count)
    name = f"llvm.masked.{'store' if contiguous else 'scatter'}.{suffix(held, count)}.{_pointers(contiguous, count)}"
    w.declare(name, "void", [type, pointer, vector("i1", count)])
    w.emit(f"call void @{name}({type} {found}, {pointer} align {bytes} {where}, {vector('i1', count)} {masks})")


def _runs(steps: Sequence[int]) -> list[tuple[int, int]]:
    """The first lane and the number of those that are neighbours in memory."""
    begins = [n for n, step in enumerate(steps) if n == 0 or step != steps[n - 1] + 1]
    return [(first, end - first) for first, end in zip(begins, [*begins[1:], len(steps)], strict=True)]


def _put_apart(w: Writer, first: str, stride: int, value: Lanes, mask: Lanes | None) -> None:
    """Write lanes that are equally far from each other, from the address of the first on: those that are near are lanes
    of vectors which are written in part, others are written one by one."""
    item, count, dtype = stored_bytes(value.dtype), value.count, value.dtype
    if not 0 < stride <= MOST_APART:
        for lane in range(count):
            write(w, w.place(first, lane * stride, item), part(w, value, lane, 1))
        return
    type, bits, found = value.type, vector("i1", count), whole(w, value)
    given = "splat (i1 true)" if mask is None else whole(w, mask)
    name = f"llvm.masked.store.{suffix(dtype, count)}.p0"
    w.declare(name, "void", [type, "ptr", bits])
    done = 0
    while done < count:
        begin = done * stride
        lanes = {n * stride - begin: n for n in range(done, count) if n * stride - begin < count}
        moved = shuffle(w, type, found, "poison", [lanes.get(n, -1) for n in range(count)])
        where = shuffle(w, bits, given, "zeroinitializer", [lanes.get(n, count) for n in range(count)])
        w.emit(f"call void @{name}({type} {moved}, ptr align {item} {w.place(first, begin, item)}, {bits} {where})")
        done += len(lanes)


class Rows(Tile):
    """Rows of neighbours in memory that nobody writes while they are read; `where` says where each begins."""

    is_in_memory = True

    def __init__(
        self, w: Writer, shape: Sequence[int], dtype: str, width: int, where: Where, sources: Sequence[Tile] = ()
    ) -> None:  # fmt: skip
        super().__init__(w, shape, dtype, width, sources)
        self._where = where

    def get(self, row: Index, column: Index, lanes: int) -> Lanes:
        return read(self.w, self.w.place(self._where(row), column, stored_bytes(self.dtype)), self.dtype, lanes)


class Strided(Tile):
    """Rows of neighbours in memory, equally far from each other, that nobody writes while they are read."""

    is_in_memory = True

    def __init__(
        self, k: Kernel, shape: Sequence[int], dtype: str, buffer: str, offset: Tile, pitch: int
    ) -> None:  # fmt: skip
        super().__init__(k.w, shape, dtype, k.width, [offset])
        self._k, self._buffer, self._offset = k, buffer, offset
        self.pitch = pitch * stored_bytes(dtype)
        """Bytes from one row to the next."""
        if self.pitch == self.columns * stored_bytes(dtype):
            self.following = Following(self.rows * self.pitch // LINE, self._line_below, continues=True)

    def _line_below(self, number: Index) -> str:
        """Where a line begins of those that follow the last row."""
        return self.w.place(self.below(self.rows, self._offset.get(0, 0, 1)), number, LINE)

    def below(self, row: Index, first: Lanes) -> str:
        """Where the element lies that is in a row, below the one of the first row at this place."""
        return self.w.place(address(self.w, self._buffer, self.dtype, first), row, self.pitch)

    def get(self, row: Index, column: Index, lanes: int) -> Lanes:
        first = self._offset.get(0, column, lanes)
        if first.base is None or (first.stride != 1 and lanes > 1):
            # Columns that are neighbours where their numbers are known need not be so elsewhere.
            return load(self._k, self._buffer, self.dtype, self._offset.get(row, column, lanes), None)
        return read(self.w, self.below(row, first), self.dtype, lanes)


# ---- ops ----------------------------------------------------------------------------------------------------------


def own(k: Kernel, op: tile.MemoryOp) -> None:
    """Print tile.memory: it lies on the stack for as long as the kernel runs."""
    space = k.w.space(op.size * stored_bytes(element(op.result)))
    k.held.append(space)
    k.buffers[op.result] = space.name


def loads(k: Kernel, op: tile.LoadOp) -> None:
    """Print tile.load."""
    buffer, dtype, shape = k.buffers[op.buffer], element(op.result), static_shape(op.result)
    offset = k.tiles[op.offset]
    mask = None if op.mask is None else k.tiles[op.mask]
    masks = None if mask is None else k.spread(mask, shape)

    def get(row: Index, column: Index, lanes: int) -> Lanes:
        given = None if masks is None else masks(row, column, lanes)
        return load(k, buffer, dtype, offset.get(row, column, lanes), given)

    sources = [offset, *([] if mask is None else [mask])]
    if _is_direct(op):
        if (where := _rows(k, op, offset, masks)) is not None:
            k.tiles[op.result] = rows = Rows(k.w, shape, dtype, k.width, where, sources)
            rows.following = _following(k, op, offset)
            return
        if mask is None and (pitch := _pitch(k, op, offset)) is not None:
            k.tiles[op.result] = Strided(k, shape, dtype, buffer, offset, pitch)
            return
        if mask is None or mask.rows == 1:
            k.view(op.result, get, sources)
            return
    if (columns := _columns(k, op.offset, offset, mask, dtype)) is not None and columns.pitch == 1:
        _load_columns(k, op, columns)
        return
    k.compute(op.result, get, sources)
    if (following := _of_next_program(k, op, offset)) is not None:
        k.ahead.append(following)


def _is_direct(op: tile.LoadOp) -> bool:
    """Whether a product or a transposition reads the elements where they lie: nothing is written in between."""
    uses = list(op.result.uses)
    if len(uses) != 1 or not isinstance(user := uses[0].operation, tile.DotOp | tile.TransposeOp):
        return False
    return is_unwritten_until(op, user)


def _rows(k: Kernel, op: tile.LoadOp, offset: Tile, masks: Read | None) -> Where | None:
    """Where the rows of a tile lie, of neighbours each; one that a mask leaves out is zeros on the stack."""
    (use,) = op.result.uses
    reader = use.operation
    if isinstance(reader, tile.TransposeOp):
        is_numbered = reads_by_number(k, reader)
    elif isinstance(reader, tile.DotOp) and op.result is reader.lhs:
        is_numbered = k.is_small(reader.acc)
    else:
        return None
    pitch = rise(op.offset)
    is_far = masks is None and pitch is None
    if offset.columns == 1 or (offset.rows > MOST_ROWS if is_numbered else is_far) or not _is_known(op.offset):
        return None

    def places(row: Index) -> tuple[Lanes, Lanes | None]:
        return offset.get(row, 0, offset.columns), None if masks is None else masks(row, 0, offset.columns)

    def is_plain(found: Lanes, mask: Lanes | None) -> bool:
        return found.base is not None and found.stride == 1 and (mask is None or mask.is_uniform)

    item = stored_bytes(element(op.result))

    def begin(row: Index, found: Lanes, mask: Lanes | None) -> str:
        # Of rows that are equally far from each other the first has an address, and others lie a number of bytes after.
        where = found if pitch is None else places(0)[0]
        first = address(k.w, k.buffers[op.buffer], element(op.result), where)
        if pitch:
            first = k.w.place(first, row, pitch * item)
        if mask is None:
            return first
        zeros = k.zeros(offset.columns * stored_bytes(element(op.result)))
        return k.w.pure(f"select i1 {mask.base}, ptr {first}, ptr {zeros}")

    if not is_numbered:
        # The rows have numbers that only the kernel knows.
        return (lambda row: begin(row, *places(row))) if is_plain(*places(0)) else None
    rows = [places(row) for row in range(offset.rows)]
    if not all(is_plain(*row) for row in rows):
        return None
    begins = [begin(n, *row) for n, row in enumerate(rows)]
    return lambda row: begins[int(row)]


def _following(k: Kernel, op: tile.LoadOp, offset: Tile) -> Following | None:
    """What follows in each row of a tile, where its rows are equally far from each other."""
    w, item, pitch = k.w, stored_bytes(element(op.result)), rise(op.offset)
    if pitch is None or offset.columns * item % LINE:
        return None
    per_row = offset.columns * item // LINE

    def address_of(line: Index) -> str:
        first = address(w, k.buffers[op.buffer], element(op.result), offset.get(0, 0, 1))
        if pitch == offset.columns:  # whole rows, of which others follow the last one
            return w.place(first, w.add(w.multiply(line, LINE), offset.rows * pitch * item))
        place = w.add(w.multiply(w.divide(line, per_row), pitch * item), w.multiply(w.rest(line, per_row), LINE))
        place = w.add(place, offset.columns * item)
        return w.place(first, place)

    return Following(offset.rows * per_row, address_of, continues=pitch == offset.columns)


def _of_next_program(k: Kernel, op: tile.LoadOp, offset: Tile) -> Following | None:
    """What the next program loads, where that lies behind what this one does, rows of neighbours without gaps."""
    count, item, pitch = advance(op.offset), stored_bytes(element(op.result)), _pitch(k, op, offset)
    if not count or pitch is None or count > prod(offset.shape) or (offset.rows > 1 and count != offset.rows * pitch):
        return None
    w = k.w
    first = w.place(address(w, k.buffers[op.buffer], element(op.result), offset.get(0, 0, 1)), count, item)
    return Following(count * item // LINE, lambda line: w.place(first, line, LINE))


def _is_known(positions: SSAValue) -> bool:
    """Whether positions follow from the program's number and the iterations alone, and not from what is in memory."""
    waiting, seen = [positions], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in seen or prod(static_shape(value)) == 1:
            continue
        seen.add(value)
        if not isinstance(value.owner, KNOWN):
            return False
        waiting.extend(value.owner.operands)
    return True


def _pitch(k: Kernel, op: tile.LoadOp, offset: Tile) -> int | None:
    """How far the rows of a tile lie from each other, in elements, where they are neighbours each."""
    places = offset.get(0, 0, min(k.width, offset.columns))
    is_row = places.base is not None and (places.stride == 1 or places.count == 1)
    return rise(op.offset) if is_row and len(offset.shape) == 2 else None


def stores(k: Kernel, op: tile.StoreOp) -> None:
    """Print tile.store: all elements are computed before the first is written."""
    buffer, shape = k.buffers[op.buffer], static_shape(op.value)
    offset, value = k.tiles[op.offset], k.tiles[op.value]
    mask = None if op.mask is None else k.tiles[op.mask]
    masks = None if mask is None else k.spread(mask, shape)
    if (columns := _columns(k, op.offset, offset, mask, value.dtype)) is not None:
        _store_columns(k, op, columns, value)
        return
    sources = [offset, value, *([] if mask is None else [mask])]

    vector_bytes = value.width * stored_bytes(value.dtype)
    streamed = (
        op.buffer in k.streamed and vector_bytes in VECTORS and multiple(op.offset, value.width) % value.width == 0
    )

    def one(row: Index, column: Index) -> None:
        given = None if masks is None else masks(row, column, value.width)
        lanes = value.get(row, column, value.width)
        put(k, buffer, offset.get(row, column, value.width), lanes, given, streamed=streamed)

    few = MOST_PIECES if k.work(op.value) * value.count <= MOST_UNROLLED else FEW
    each(value, value.width, few, sources, k.fetching(value, one) if value.count > few else one)


class _Columns:
    """Columns of a tile, in each of which as many rows as are turned together are `pitch` elements from each other."""

    def __init__(self, offset: Tile, mask: Tile | None, pitch: int, side: int) -> None:
        self.offset, self.mask, self.pitch = offset, mask, pitch
        self._side = side
        """Rows that are turned at a time."""
        self._masks = None if mask is None or mask.columns > 1 else read_flat(mask)

    def places(self, row: Index, column: Index, count: int) -> tuple[Lanes, Lanes | None]:
        """Where some elements of a column lie, from a row on, and which of them do."""
        where = replace(self.offset.get(row, column, 1), count=count, stride=self.pitch if count > 1 else 0)
        if self._masks is None:
            return where, None if self.mask is None else self.mask.get(0, column, 1).repeat(count)
        return where, self._masks(row, count)

    def prepare(self) -> None:
        """Make positions possible that only the kernel knows."""
        for source in (self.offset, self.mask):
            if source is not None:
                source.prepare()

    def groups(self) -> list[tuple[int, int]]:
        """The first and the number of rows that go together: as many as are turned, then fours, then single ones."""
        found, row = list[tuple[int, int]](), 0
        for count in (self._side, QUAD, 1):
            found += [(first, count) for first in range(row, self.offset.rows - count + 1, count)]
            row = sum(found[-1]) if found else 0
        return found

    def by_rows(self, k: Kernel, some: Callable[[Index, int], None]) -> None:
        """Do something with all groups of rows, in a loop."""
        self.prepare()
        groups = self.groups()
        even = sum(count for _, count in groups if count == self._side)

        def turned(row: str, _: Sequence[str]) -> Sequence[str]:
            some(row, self._side)
            return []

        k.w.loop("0", str(even), self._side, [], turned)
        for row, count in groups[even // self._side :]:
            some(row, count)


def _columns(
    k: Kernel, positions: SSAValue, offset: Tile, mask: Tile | None, dtype: str
) -> _Columns | None:  # fmt: skip
    """The columns of a tile, if elements of a column, and not of a row, are near each other in memory; a mask leaves
    out whole ones."""
    if len(offset.shape) != 2 or min(offset.shape) < QUAD or offset.columns % QUAD or dtype == "i1":
        return None
    first = offset.get(0, 0, offset.width)
    if (first.base is not None and first.stride == 1) or (mask is not None and 1 not in mask.shape):
        return None
    if rise(positions) == 1:
        return _Columns(offset, mask, 1, k.width if offset.rows >= k.width else QUAD)
    for side in (n for n in (16, 8, QUAD) if n <= k.width and offset.rows % n == 0):
        if 0 < (pitch := rise(positions, side) or 0) <= MOST_APART:
            return _Columns(offset, mask, pitch, side)
    return None


def _load_columns(k: Kernel, op: tile.LoadOp, given: _Columns) -> None:
    """Read a tile column by column, a few rows of each at a time, and turn them in registers: elements that lie apart
    would take a load each."""
    w, buffer, shape, dtype = k.w, k.buffers[op.buffer], static_shape(op.result), element(op.result)
    columns = View(
        w, shape[::-1], dtype, k.width, lambda c, r, lanes: load(k, buffer, dtype, *given.places(r, c, lanes))
    )
    width = gcd(k.width, shape[1])

    def rows(row: Index, count: int, column: Index) -> list[Lanes]:
        if count > 1:
            return turn(w, columns, row, count, column, width)
        return [gather(w, columns, [(w.add(column, lane), row) for lane in range(width)])]

    if shape[0] * shape[1] // width <= MOST_PIECES:
        pieces: list[Lanes] = []
        for row, count in given.groups():
            found = [rows(row, count, column) for column in range(0, shape[1], width)]
            pieces += [lanes[n] for n in range(count) for lanes in found]
        k.tiles[op.result] = Pieces(w, shape, dtype, k.width, pieces)
        return
    target = Stored(w, shape, dtype, k.width)

    def put_rows(row: Index, count: int) -> None:
        for column in range(0, shape[1], width):
            for n, lanes in enumerate(rows(row, count, column)):
                target.put(w.add(row, n), column, lanes)

    given.by_rows(k, put_rows)
    k.tiles[op.result] = target


def _store_columns(k: Kernel, op: tile.StoreOp, given: _Columns, value: Tile) -> None:
    """Write a tile column by column, four of them beside each other: elements that lie apart would take a store each,
    and of more columns, which are often pages apart, lines would leave the nearest cache before they are full."""
    w, buffer, found = k.w, k.buffers[op.buffer], store(value)

    def four(column: str, _: Sequence[str]) -> Sequence[str]:
        def write_rows(row: Index, count: int) -> None:
            lanes = turn(w, found, column, QUAD, row, count) if count > 1 else [found.get(row, column, QUAD)]
            for n in range(QUAD):
                where, mask = given.places(row, w.add(column, n), count)
                put(k, buffer, where, lanes[n] if count > 1 else part(w, lanes[0], n, 1), mask)

        given.by_rows(k, write_rows)
        return []

    given.prepare()
    w.loop("0", str(value.columns), QUAD, [], four)


_COMBINE = {"add": "add", "max": "maximum", "min": "minimum", "and": "and", "or": "or", "xor": "xor"}


def atomics(k: Kernel, op: tile.AtomicOp) -> None:
    """Print tile.atomic: one lane after the other; a kernel that has one is run by one thread."""
    w, buffer, shape = k.w, k.buffers[op.buffer], static_shape(op.value)
    offset, value = k.tiles[op.offset], k.tiles[op.value]
    mask = None if op.mask is None else k.tiles[op.mask]
    masks = None if mask is None else k.spread(mask, shape)
    name, dtype = op.function.data, element(op.value)
    sources = [offset, value, *([] if mask is None else [mask])]

    def lane(row: Index, column: Index) -> None:
        given = None if masks is None else masks(row, column, 1)
        where = address(w, buffer, dtype, offset.get(row, column, 1))
        if given is not None:
            where = w.pure(f"select i1 {given.base}, ptr {where}, ptr {k.nowhere}")
        found = value.get(row, column, 1)
        if name != "xchg":
            found = arithmetic.apply(w, _COMBINE[name], [read(w, where, dtype, 1), found])
        write(w, where, found)

    each(value, 1, 1, sources, lane)


def describes(k: Kernel, op: DescribeOp) -> None:
    """Print tile.describe: the parts are kept for loads of boxes."""
    layout = [k.tiles[value].get(0, 0, 1) for value in op.layout]
    k.described[op.result] = (k.buffers[op.buffer], layout[: op.rank], layout[op.rank :])


def load_boxes(k: Kernel, op: LoadBoxOp) -> None:
    """Print tile.load_box."""
    w, dtype, shape = k.w, element(op.result), static_shape(op.result)
    buffer, sizes, strides = k.described[op.descriptor]
    firsts = [_wide(w, k.tiles[value].get(0, 0, 1)) for value in op.offsets]

    def get(row: Index, column: Index, lanes: int) -> Lanes:
        place, inside = position(w, 0, lanes, stride=0), None
        for axis, index in enumerate(k.indices(row, column, shape)):
            at = position(w, index, lanes, stride=int(axis == len(shape) - 1))
            at = arithmetic.apply(w, "add", [at, firsts[axis].repeat(lanes)])
            size, stride = (_wide(w, found[axis]).repeat(lanes) for found in (sizes, strides))
            zero = position(w, 0, lanes, stride=0)
            within = arithmetic.apply(
                w, "and", [arithmetic.apply(w, "ge", [at, zero]), arithmetic.apply(w, "lt", [at, size])]
            )
            inside = within if inside is None else arithmetic.apply(w, "and", [inside, within])
            step = at if axis == len(shape) - 1 else arithmetic.apply(w, "multiply", [at, stride])
            place = arithmetic.apply(w, "add", [place, step])
        return load(k, buffer, dtype, place, inside)

    k.compute(op.result, get, ())


def _wide(w: Writer, lanes: Lanes) -> Lanes:
    """A position as an i64."""
    if lanes.dtype == "i64":
        return lanes
    found = arithmetic.convert_positions(w, lanes, "i64")
    assert found is not None
    return found


__all__ = ["atomics", "describes", "load_boxes", "loads", "own", "stores"]
