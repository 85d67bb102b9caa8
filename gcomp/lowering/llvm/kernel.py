"""What rows of the printers share: the kernel that is being printed, its values, and tiles made of rules for pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd, prod
from typing import Any, TypeVar

from xdsl.ir import Block, Operation, SSAValue

from gcomp.lowering.llvm.columns import Column, is_column, read_flat
from gcomp.lowering.llvm.fetching import Following, fetch
from gcomp.lowering.llvm.lanes import Lanes, part
from gcomp.lowering.llvm.tiles import MOST_PIECES, Pieces, Read, Stored, Tile, View, fill, spaces
from gcomp.lowering.llvm.writer import Index, Space, Writer
from gcomp.lowering.tiles import combining, tile
from gcomp.lowering.tiles.tile import element, static_shape

POSITIONS = frozenset({"i1", "i32", "i64"})
PIECEWISE = (tile.ElementwiseOp, tile.CastOp, tile.BitcastOp)
"""Ops that compute a piece of their result from the same piece of their operands."""
ONCE = (*PIECEWISE, tile.StoreOp, combining.ReduceOp)
"""Ops that read each piece of an operand in one place."""

FEW = 8
"""Pieces of a value that are computed side by side, at most: each op of all of them, and then the next."""

R = TypeVar("R")
Row = Callable[["Kernel", Any], None]
"""Prints an op."""


_DEEPEST = 64
"""Beyond so many tiles that are computed when they are read, one from another, a tile is computed at once: each level
takes frames of Python's stack."""


class Kernel:
    """A kernel in the making. `width` is how many lanes vectors have, `words` how bytes are multiplied."""

    def __init__(self, rows: Mapping[type[Operation], Row], width: int, words: str = "") -> None:
        self.w, self.width, self.words = Writer(), width, words
        self.buffers: dict[SSAValue, str] = {}
        """The addresses of buffers."""
        self.tiles: dict[SSAValue, Tile] = {}
        self.described: dict[SSAValue, Any] = {}
        """What tile.describe says, for those that load boxes."""
        self.programs: Sequence[str] = ()
        """The program's position along the axes of the grid, as i32."""
        self.zero, self.nowhere = "%zero", "%nowhere"
        """Elements on the stack: one that is always 0, and one that nothing reads."""
        self.cleared = 0
        """Bytes on the stack that are always 0."""
        self.held: list[Space] = []
        """Memory of loops around what is being printed."""
        self.streamed: frozenset[SSAValue] = frozenset()
        """Buffers that are written past the caches."""
        self.ahead: list[Following] = []
        """What the next program loads: this one fetches it in the next loop over pieces that it computes."""
        self.divided: set[SSAValue] = set()
        """Columns of positions that are divided by sizes which the call decides, and what follows from them."""
        self._rows = rows
        self._places: dict[SSAValue, frozenset[Operation]] = {}

    def block(self, block: Block) -> list[Tile]:
        """Print a block's ops; what it yields. Memory of values that nothing reads any more is used anew."""
        last: dict[SSAValue, int] = {}
        ops = list(block.ops)
        for n, op in enumerate(ops):
            for inner in op.walk():
                for value in inner.operands:
                    last[value] = n
        for op in reversed(ops):
            if isinstance(op, PIECEWISE):
                self._computing(op.results[0])  # from the last on, each finds what it needs
        for n, op in enumerate(ops):
            if isinstance(op, tile.YieldOp):
                return [self.tiles[value] for value in op.operands]
            self._rows[type(op)](self, op)
            for value in (*op.operands, *op.results):
                # What comes from outside of the block is read again when a loop's body runs again.
                owner = value.owner
                if (owner is block or owner.parent is block) and last.get(value, n) <= n:
                    self.tiles.pop(value, None)
            self._release()
        return []

    def _release(self) -> None:
        if any(space not in self.held for space in self.w.spaces):
            self.w.release({*self.held, *spaces(self.tiles.values())})

    # ---- tiles ----

    def view(self, value: SSAValue, read: Read, sources: Sequence[Tile] = ()) -> None:
        """A value whose pieces follow from a rule that costs nothing."""
        self.tiles[value] = View(self.w, static_shape(value), element(value), self.width, read, sources)

    def pointwise(
        self, value: SSAValue, function: Callable[[list[Lanes]], Lanes], sources: Sequence[Tile], *, lazily: bool
    ) -> None:  # fmt: skip
        """A value each of whose elements is a function of those at its place, computed at once or when it is read."""
        shape, dtype = static_shape(value), element(value)
        if is_column(shape) and all(prod(source.shape) in (1, prod(shape)) for source in sources):
            columns = [read_flat(source) for source in sources]

            def down(_: Index, row: Index, lanes: int) -> Lanes:
                if lanes == 1 and value in self.divided and isinstance(row, int):
                    # Of positions that are divided, as many as a vector has are found together.
                    first = row - row % (self.width // 2)
                    count = min(self.width // 2, prod(shape) - first)
                    if count > 1:
                        return part(self.w, flat.get(0, first, count), row - first, 1)
                return function([get(row, lanes) for get in columns])

            flat = self._computed((prod(shape),), dtype, down, sources, lazily=lazily)
            self.tiles[value] = Column(self.w, shape, self.width, flat)
            return
        reads = [self.spread(source, shape) for source in sources]

        def read(row: Index, column: Index, lanes: int) -> Lanes:
            return function([get(row, column, lanes) for get in reads])

        self.tiles[value] = self._computed(shape, dtype, read, sources, lazily=lazily)

    def compute(self, value: SSAValue, read: Read, sources: Sequence[Tile]) -> None:
        """A value whose pieces are computed by a rule, at once."""
        self.tiles[value] = self._computed(static_shape(value), element(value), read, sources, lazily=False)

    def _computed(
        self, shape: Sequence[int], dtype: str, read: Read, sources: Sequence[Tile], *, lazily: bool
    ) -> Tile:  # fmt: skip
        if lazily and all(source.depth < _DEEPEST for source in sources):
            return View(self.w, shape, dtype, self.width, read, sources)
        (found,) = self.together([(shape, dtype)], lambda row, column, lanes: [read(row, column, lanes)], sources)
        return found

    def together(
        self, types: Sequence[tuple[Sequence[int], str]], read: Callable[[Index, Index, int], list[Lanes]],
        sources: Sequence[Tile],
    ) -> Sequence[Tile]:  # fmt: skip
        """Tiles of one shape, whose pieces are computed together."""
        w, width = self.w, self.width
        shape, dtype = types[0]
        first = View(w, shape, dtype, width, lambda row, column, lanes: read(row, column, lanes)[0])
        if first.is_small:
            per_row = first.columns // first.width
            pieces = [read(n // per_row, n % per_row * first.width, first.width) for n in range(first.count)]
            return [
                Pieces(w, shape, dtype, width, [piece[k] for piece in pieces]) for k, (shape, dtype) in enumerate(types)
            ]
        targets = [Stored(w, shape, dtype, width) for shape, dtype in types]
        fill(targets, sources, self.fetching(first, read))
        return targets

    def fetching(self, tile: Tile, one: Callable[..., R]) -> Callable[..., R]:
        """What is done with each piece of a tile, in order, and with it a share of what is to be fetched ahead."""
        following, self.ahead = self.ahead, []

        def both(row: Index, column: Index, *others: Any) -> R:
            number = self.w.divide(self.w.add(self.w.multiply(row, tile.columns), column), tile.width)
            for found in following:
                fetch(self.w, found, number, tile.count)
            return one(row, column, *others)

        return both if following else one

    def pieces(self, value: SSAValue) -> int:
        """How many pieces a value has."""
        shape = static_shape(value)
        columns = prod(shape) if is_column(shape) else shape[-1] if shape else 1
        return prod(shape) // gcd(self.width, columns)

    def is_small(self, value: SSAValue) -> bool:
        """Whether registers hold a value."""
        return self.pieces(value) <= MOST_PIECES

    def is_lazy(self, value: SSAValue) -> bool:
        """Whether a value is computed where it is read: positions always are, more than a few pieces of others if that
        is in one place, which computes each piece once, from its first operand to its last result: registers hold
        all that it needs, where they would not hold what every piece needs."""
        if element(value) in POSITIONS:
            return True
        if self.pieces(value) <= FEW or len(places := self._computing(value)) != 1:
            return False
        (place,) = places
        return len(list(value.uses)) == 1 or isinstance(place, ONCE)

    def _computing(self, value: SSAValue) -> frozenset[Operation]:
        """The ops whose loops compute a value, if it is lazy: those that read it, or that compute lazy results of it.

        A reader in another block counts as two, since it may run often, and so does a product of its factors, which it
        reads for each block of sums.
        """
        if value not in self._places:
            found = set[Operation]()
            for op in {use.operation for use in value.uses}:
                if op.parent is not value.owner.parent or (isinstance(op, tile.DotOp) and value in (op.lhs, op.rhs)):
                    found |= {op, op.parent_op() or op}
                elif (
                    isinstance(op, PIECEWISE)
                    and static_shape(op.results[0]) == static_shape(value)
                    and self.is_lazy(op.results[0])
                ):
                    found |= self._computing(op.results[0])
                else:
                    found.add(op)
            self._places[value] = frozenset(found)
        return self._places[value]

    def work(self, value: SSAValue) -> int:
        """How many ops are computed for a piece of a value when it is read."""
        pending, found = [value], set[Operation]()
        while pending:
            op = pending.pop().owner
            if isinstance(op, PIECEWISE) and op not in found and self.is_lazy(op.results[0]):
                found.add(op)
                pending += op.operands
        return len([op for op in found if element(op.results[0]) not in POSITIONS])

    def zeros(self, bytes: int) -> str:
        """Where so many bytes are 0."""
        self.cleared = max(self.cleared, bytes)
        return self.zero

    def indices(self, row: Index, column: Index, shape: Sequence[int]) -> list[Index]:
        """The position of an element in all dimensions."""
        if not shape:
            return []
        found: list[Index] = [column]
        for size in reversed(shape[1:-1]):
            found.append(self.w.rest(row, size))
            row = self.w.divide(row, size)
        if len(shape) > 1:
            found.append(row)
        return found[::-1]

    def row_of(self, indices: Sequence[Index], shape: Sequence[int]) -> Index:
        """The row of a position."""
        row: Index = 0
        for index, size in zip(indices[:-1], shape[:-1], strict=True):
            row = self.w.add(self.w.multiply(row, size), index)
        return row

    def spread(self, source: Tile, shape: Sequence[int]) -> Read:
        """Pieces of a tile that is repeated to a shape."""
        if source.shape == tuple(shape):
            return source.get
        if not source.shape:
            return lambda row, column, lanes: source.get(0, 0, 1).repeat(lanes)

        def read(row: Index, column: Index, lanes: int) -> Lanes:
            places = self.indices(row, column, shape)
            places = [0 if n == 1 else place for place, n in zip(places, source.shape, strict=True)]
            own = self.row_of(places, source.shape)
            if source.columns == 1 and lanes > 1:
                return source.get(own, 0, 1).repeat(lanes)
            return source.get(own, places[-1], lanes)

        return read
