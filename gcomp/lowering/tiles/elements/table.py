"""Elements on demand: the tile of a value's elements at coordinates, computed from what the kernel reads.

`Elements` asks the row of the op that computes a value, and rows ask for elements of the op's operands, at indices
that the op's indexing map gives; at the kernel's inputs this ends in loads. So ops that only move data become index
arithmetic, and nothing is computed that no output needs. `ROWS` is the whole table; `WITHOUT` says what has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from xdsl.ir import Operation, SSAValue

from gcomp.analysis.indexing.maps import Condition, IndexingMap
from gcomp.analysis.indexing.table import operand_maps
from gcomp.dims import Size
from gcomp.errors import UnsupportedError
from gcomp.ir.locations import where
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements.bits import sign_extend
from gcomp.lowering.tiles.frames import Frame

Row = Callable[["Elements", Any, int, IndexingMap], SSAValue]
"""Of an op and the number of a result: the tile of that result's elements that an access names."""
R = TypeVar("R", bound=Row)

ROWS: dict[type[Operation], Row] = {}
"""Op class -> how its elements are computed."""

WITHOUT: dict[type[Operation], str] = {}
"""Op class -> why its elements cannot be computed one by one."""


def elements_of(*ops: type[Operation]) -> Callable[[R], R]:
    """Register a function as the row of op classes."""

    def register(row: R) -> R:
        for op in ops:
            ROWS[op] = row
        return row

    return register


Key = tuple[SSAValue, tuple[Size, ...], tuple[Condition, ...]]


class Elements:
    """Elements of the values of a kernel's body, in a frame. `buffers` are where the body's arguments lie."""

    def __init__(self, frame: Frame, buffers: Mapping[SSAValue, SSAValue]) -> None:
        self.frame = frame
        self.buffers = buffers
        self._known: list[dict[Key, SSAValue]] = [{}]

    @property
    def b(self) -> TileBuilder:
        """The builder."""
        return self.frame.b

    def __call__(self, value: SSAValue, access: IndexingMap) -> SSAValue:
        """The tile of elements that an access names; what its conditions exclude has any value."""
        if 0 in access.shape:
            # No lane can mean an element of nothing.
            return self.b.constant(0, dtype_text(value.type))
        key = (value, access.indices, access.conditions)
        anywhere = (value, access.indices, ())
        for known in reversed(self._known):
            if key in known:
                return known[key]
            if anywhere in known:
                return known[anywhere]
        found = self._load(value, access) if value in self.buffers else self._compute(value, access)
        self._known[-1][key] = found
        return found

    def know(self, value: SSAValue, access: IndexingMap, tile: SSAValue) -> None:
        """Say what the tile of an access is."""
        self._known[-1][value, access.indices, access.conditions] = tile

    @contextmanager
    def scope(self) -> Generator[None]:
        """What is computed inside, in a loop's body, is known inside only."""
        self._known.append({})
        try:
            yield
        finally:
            self._known.pop()

    def operands(self, op: Operation, result: int, access: IndexingMap) -> list[SSAValue]:
        """The elements that an op of single elements reads of each operand."""
        return [self.operand(op, result, n, access) for n in range(len(op.operands))]

    def operand(self, op: Operation, result: int, n: int, access: IndexingMap) -> SSAValue:
        """The elements that an op of single elements reads of an operand."""
        return self(op.operands[n], self.reads(op, result, n, access))

    def reads(
        self, op: Operation, result: int, n: int, access: IndexingMap, ranged: Sequence[Size] = ()
    ) -> IndexingMap:
        """Where an op reads an operand; `ranged` are the formulas of its range variables."""
        m = operand_maps(op)[result][n]
        if m is None or len(m.ranges) != len(ranged):
            raise refusal(op, "what it reads has no formula")
        return self.frame.through(access, m, ranged)

    def _load(self, value: SSAValue, access: IndexingMap) -> SSAValue:
        frame = self.frame
        place = frame.place(access.shape, access.indices)
        mask = frame.mask(access.conditions, frame.used(access))
        return sign_extend(
            self.b, self.b.load(self.buffers[value], frame.position(place), mask), dtype_text(value.type)
        )

    def _compute(self, value: SSAValue, access: IndexingMap) -> SSAValue:
        op = value.owner
        if not isinstance(op, Operation):
            raise LookupError(f"the value {value} is not of this kernel")
        row = ROWS.get(type(op))
        if row is None:
            raise refusal(op, WITHOUT.get(type(op), "the tile level has no row for it"))
        with self.b.at(op.location):
            return row(self, op, next(i for i, r in enumerate(op.results) if r is value), access)


def refusal(op: Operation, why: str) -> UnsupportedError:
    """That an op has no place in a kernel."""
    return UnsupportedError(f"{op.name} cannot be computed in a kernel", where=where(op), why=why)
