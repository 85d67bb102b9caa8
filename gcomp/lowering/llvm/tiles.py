"""Tiles while a kernel runs: pieces of rows in registers, memory on the stack, or a rule that says what each piece is.

A tile of a shape has rows, which all dimensions but the last number, and columns. A piece is a part of a row: as many
lanes as vectors have, or the whole row where that is shorter. Whoever reads a tile asks for pieces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from math import gcd, prod

from gcomp.lowering.llvm.fetching import Following
from gcomp.lowering.llvm.lanes import Lanes, join, part, vectorial, whole
from gcomp.lowering.llvm.writer import Index, Space, Writer, stored_bytes, stored_type, type_of, vector

MOST_BESIDE = 4
"""Pieces of a row that an iteration of a loop over rows does one after the other, at most."""
MOST_PIECES = 32
"""Pieces of a tile that are kept in registers, at most; others are in memory, and loops go over them."""

Read = Callable[[Index, Index, int], Lanes]
"""Of a row, a column and a number of lanes: these elements."""


class Tile(ABC):
    """Elements of one type in a static shape."""

    following: Following | None = None
    """What is read next by who reads this, where that is known."""
    is_in_memory = False
    """Whether its elements lie in memory, row by row."""

    def __init__(
        self, w: Writer, shape: Sequence[int], dtype: str, width: int, sources: Sequence[Tile] = ()
    ) -> None:  # fmt: skip
        self.w, self.shape, self.dtype = w, tuple(shape), dtype
        self.sources = sources
        """The tiles that elements are computed from when they are read."""
        self.depth = 1 + max((source.depth for source in sources), default=-1)
        """How many tiles in a row are read for an element."""
        self.columns = self.shape[-1] if self.shape else 1
        self.rows = prod(self.shape[:-1])
        self.width = gcd(width, self.columns)
        """Lanes of a piece."""

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return self.rows * self.columns // self.width

    @property
    def is_small(self) -> bool:
        """Whether registers hold it."""
        return self.count <= MOST_PIECES

    @abstractmethod
    def get(self, row: Index, column: Index, lanes: int) -> Lanes:
        """Elements side by side in a row."""

    def prepare(self) -> None:
        """Make positions that are known only while the kernel runs possible, for reads in a loop that follows."""
        for tile in _reach([self]):
            tile.prepare_itself()

    def prepare_itself(self) -> None:
        """`prepare`, apart from its sources."""
        return

    def own_spaces(self) -> set[Space]:
        """The memory that its own elements are in."""
        return set()

    def piece(self, number: int, lanes: int | None = None) -> Lanes:
        """A piece by its number."""
        lanes = lanes or self.width
        return self.get(*self.place(number, lanes), lanes)

    def place(self, number: int, lanes: int) -> tuple[int, int]:
        """The row and the column at which a piece of so many lanes begins."""
        row, piece = divmod(number, self.columns // lanes)
        return row, piece * lanes


class Stored(Tile):
    """Elements in memory on the stack, row-major. `width` elements before and after them may be read."""

    is_in_memory = True

    def __init__(self, w: Writer, shape: Sequence[int], dtype: str, width: int) -> None:
        super().__init__(w, shape, dtype, width)
        self._item = stored_bytes(dtype)
        margin = -(-width * self._item // 64) * 64
        self.space = w.space(prod(self.shape) * self._item + 2 * margin)
        self.data = w.pure(f"getelementptr i8, ptr {self.space.name}, i64 {margin}")

    def address(self, row: Index, column: Index, offset: int = 0) -> str:
        """Where an element lies, or one that is `offset` elements away."""
        w = self.w
        place = w.add(w.multiply(row, self.columns), column)
        return w.place(self.data, w.add(place, offset), self._item)

    def get(self, row: Index, column: Index, lanes: int) -> Lanes:
        return read(self.w, self.address(row, column), self.dtype, lanes)

    def near(self, row: Index, column: Index, offset: int, lanes: int) -> Lanes:
        """Elements side by side that begin `offset` elements away, in this row or not."""
        return read(self.w, self.address(row, column, offset), self.dtype, lanes)

    def load_from(self, row: Index, column: Index, offset: str, lanes: int) -> Lanes:
        """Elements side by side that begin some elements away, which the kernel computes."""
        return read(self.w, self.w.place(self.address(row, column), offset, self._item), self.dtype, lanes)

    def put(self, row: Index, column: Index, lanes: Lanes) -> None:
        """Store contiguous elements."""
        write(self.w, self.address(row, column), lanes)

    def own_spaces(self) -> set[Space]:
        return {self.space}


class View(Tile):
    """Elements by a rule, computed whenever they are read, from other tiles."""

    def __init__(
        self, w: Writer, shape: Sequence[int], dtype: str, width: int, read: Read, sources: Sequence[Tile] = ()
    ) -> None:
        super().__init__(w, shape, dtype, width, sources)
        self._read = read
        self._known: dict[tuple[Index, Index, int], tuple[Lanes, str]] = {}

    def get(self, row: Index, column: Index, lanes: int) -> Lanes:
        key = (row, column, lanes)
        if key in self._known and self.w.knows(self._known[key][1]):
            return self._known[key][0]
        found = self._read(row, column, lanes)
        self._known[key] = found, self.w.mark()
        return found


class Pieces(Tile):
    """Elements in registers."""

    def __init__(self, w: Writer, shape: Sequence[int], dtype: str, width: int, pieces: Sequence[Lanes]) -> None:
        super().__init__(w, shape, dtype, width)
        self.pieces = list(pieces)
        self._stored: list[tuple[Stored, str]] = []

    def get(self, row: Index, column: Index, lanes: int) -> Lanes:
        if lanes > self.width:
            return gather(self.w, self, [(row, self.w.add(column, lane)) for lane in range(lanes)])
        if isinstance(row, int) and isinstance(column, int):
            place = row * self.columns + column
            return part(self.w, self.pieces[place // self.width], place % self.width, lanes)
        first = self.pieces[0]
        if first.is_uniform and all(p.is_uniform and p.base == first.base for p in self.pieces):
            return first.repeat(lanes)
        return self._in_memory().get(row, column, lanes)

    def prepare_itself(self) -> None:
        first = self.pieces[0]
        if not (first.is_uniform and all(p.is_uniform and p.base == first.base for p in self.pieces)):
            self._in_memory()

    def _in_memory(self) -> Stored:
        # The writer's knowledge ends with the code that it is about: so does this.
        for stored, mark in self._stored:
            if self.w.knows(mark):
                return stored
        stored = store(self)
        self._stored.append((stored, self.w.mark()))
        return stored

    def own_spaces(self) -> set[Space]:
        return {stored.space for stored, _ in self._stored}


def spaces(tiles: Iterable[Tile]) -> set[Space]:
    """The memory that the elements of tiles are in, and what they are computed from."""
    return set[Space]().union(*[tile.own_spaces() for tile in _reach(tiles)])


def _reach(tiles: Iterable[Tile]) -> Iterable[Tile]:
    """Tiles and those that they are computed from, each once: many have the same sources."""
    found: dict[Tile, None] = {}
    pending = [*tiles][::-1]
    while pending:
        tile = pending.pop()
        if tile not in found:
            found[tile] = None
            pending += tile.sources[::-1]
    return found


def read(w: Writer, address: str, dtype: str, lanes: int) -> Lanes:
    """Elements in memory."""
    found = w.value(f"load {vector(stored_type(dtype), lanes)}, ptr {address}, align {stored_bytes(dtype)}")
    return vectorial(dtype, lanes, truth(w, found, lanes) if dtype == "i1" else found)


def write(w: Writer, address: str, lanes: Lanes, *, streamed: bool = False) -> None:
    """Elements to memory; `streamed` ones past the caches, to an address that is a multiple of their bytes."""
    found = whole(w, lanes)
    if lanes.dtype == "i1":
        found = byte(w, found, lanes.count)
    type = vector(stored_type(lanes.dtype), lanes.count)
    item = stored_bytes(lanes.dtype)
    how = f"align {item * lanes.count}, !nontemporal !0" if streamed else f"align {item}"
    w.emit(f"store {type} {found}, ptr {address}, {how}")


def truth(w: Writer, value: str, lanes: int) -> str:
    """Bytes as truth values."""
    return w.pure(f"icmp ne {type_of('i8', lanes)} {value}, zeroinitializer" if lanes > 1 else f"icmp ne i8 {value}, 0")


def byte(w: Writer, value: str, lanes: int) -> str:
    """Truth values as bytes."""
    return w.pure(f"zext {type_of('i1', lanes)} {value} to {type_of('i8', lanes)}")


def store(tile: Tile) -> Stored:
    """A tile in memory."""
    if isinstance(tile, Stored):
        return tile
    found = Stored(tile.w, tile.shape, tile.dtype, tile.width)
    fill([found], [tile], lambda row, column, lanes: [tile.get(row, column, lanes)])
    return found


def fill(
    targets: Sequence[Stored], sources: Sequence[Tile], read: Callable[[Index, Index, int], list[Lanes]],
    few: int = MOST_PIECES,
) -> None:  # fmt: skip
    """Write pieces of tiles of one shape, in a loop where there are more than `few`. `sources` are what is read."""
    first = targets[0]

    def one(row: Index, column: Index) -> None:
        for target, found in zip(targets, read(row, column, first.width), strict=True):
            target.put(row, column, found)

    each(first, first.width, few, sources, one)


def each(tile: Tile, lanes: int, few: int, sources: Sequence[Tile], one: Callable[[Index, Index], None]) -> None:
    """Do something with each row and column at which a piece of so many lanes begins, in order: in a loop, which reads
    from `sources`, where these are not few."""
    w, per_row = tile.w, tile.columns // lanes
    count = tile.rows * per_row
    if count <= few:
        for number in range(count):
            one(*tile.place(number, lanes))
        return
    for source in sources:
        source.prepare()

    def in_row(row: str, _: Sequence[str]) -> Sequence[str]:
        for column in range(0, tile.columns, lanes):
            one(row, column)
        return []

    beside = max(n for n in range(1, MOST_BESIDE + 1) if per_row % n == 0)

    def along_row(row: Index) -> None:
        def some(column: str, _: Sequence[str]) -> Sequence[str]:
            for n in range(beside):
                one(row, w.add(column, n * lanes))
            return []

        w.loop("0", str(tile.columns), beside * lanes, [], some)

    def in_long_row(row: str, _: Sequence[str]) -> Sequence[str]:
        along_row(row)
        return []

    if per_row <= MOST_BESIDE:
        w.loop("0", str(tile.rows), 1, [], in_row)
    elif tile.rows == 1:
        along_row(0)
    else:
        w.loop("0", str(tile.rows), 1, [], in_long_row)


def gather(w: Writer, tile: Tile, places: Sequence[tuple[Index, Index]]) -> Lanes:
    """Single elements as lanes."""
    return join(w, [tile.get(row, column, 1) for row, column in places])
