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
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import dtype_text
from gcomp.lowering.tiles.build import TileBuilder
from gcomp.lowering.tiles.elements.bits import sign_extend
from gcomp.lowering.tiles.frames import Frame

Row = Callable[["Elements", Any, int, IndexingMap], SSAValue]
"""Of an op and the number of a result: the tile of that result's elements that an access names."""
R = TypeVar("R", bound=Row)

DEEP = 32
"""Values that are computed each for the one before in Python's own recursion, of which there may be few."""

ROWS: dict[type[Operation], Row] = {}
"""Op class -> how its elements are computed."""

WITHOUT: dict[type[Operation], str] = {}
"""Op class -> why its elements cannot be computed one by one."""

RUN_BY_XLA: set[type[Operation]] = set()
"""Of these, what other targets run wherever it stands."""


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
        self.sources: dict[tuple[SSAValue, SSAValue], tuple[IndexingMap, IndexingMap]] = {}
        """(a result, an operand of its op) -> an access of the result, and the operand's elements that it reads.

        Formulas of the same elements may differ, and what is known is found by its formula.
        """
        self._known: list[dict[Key, SSAValue]] = [{}]
        self._depth = 0
        """How many values are being computed, each for the one before."""

    @property
    def b(self) -> TileBuilder:
        """The builder."""
        return self.frame.b

    def __call__(self, value: SSAValue, access: IndexingMap) -> SSAValue:
        """The tile of elements that an access names; what its conditions exclude has any value."""
        if 0 in access.shape:
            # No lane can mean an element of nothing.
            return self.b.constant(0, dtype_text(value.type))
        found = self._find(value, access)
        if found is None:
            found = self._load(value, access) if value in self.buffers else self._compute(value, access)
            self._known[-1][value, access.indices, access.conditions] = found
        return found

    def _find(self, value: SSAValue, access: IndexingMap) -> SSAValue | None:
        """The tile of an access that is known."""
        key = (value, access.indices, access.conditions)
        anywhere = (value, access.indices, ())
        for known in reversed(self._known):
            if key in known:
                return known[key]
            if anywhere in known:
                return known[anywhere]
        return None

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
        if self._depth > DEEP:
            self._compute_below(op, result, access)
        return [self.operand(op, result, n, access) for n in range(len(op.operands))]

    def _compute_below(self, op: Operation, result: int, access: IndexingMap) -> None:
        """Compute what an op reads through any number of elementwise ops, in the same order, and not as deep."""
        pending: list[tuple[SSAValue, IndexingMap, bool]] = []

        def read(op: Operation, result: int, access: IndexingMap) -> None:
            for n in reversed(range(len(op.operands))):
                pending.append((op.operands[n], self.reads(op, result, n, access), False))

        read(op, result, access)
        while pending:
            value, there, is_next = pending.pop()
            owner = value.owner
            if is_next or not isinstance(owner, Operation) or role_of(owner) is not Role.ELEMENTWISE:
                self(value, there)
            elif 0 not in there.shape and self._find(value, there) is None:
                pending.append((value, there, True))
                read(owner, _number_of(value, owner), there)

    def operand(self, op: Operation, result: int, n: int, access: IndexingMap) -> SSAValue:
        """The elements that an op of single elements reads of an operand."""
        return self(op.operands[n], self.reads(op, result, n, access))

    def reads(
        self, op: Operation, result: int, n: int, access: IndexingMap, ranged: Sequence[Size] = ()
    ) -> IndexingMap:
        """Where an op reads an operand; `ranged` are the formulas of its range variables."""
        there, source = self.sources.get((op.results[result], op.operands[n]), (None, access))
        if there == access:
            return source
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
            raise refusal(op, WITHOUT.get(type(op), "the tile level has no row for it"), elsewhere(op))
        self._depth += 1
        try:
            with self.b.at(op.location):
                return row(self, op, _number_of(value, op), access)
        finally:
            self._depth -= 1


def _number_of(value: SSAValue, op: Operation) -> int:
    return next(i for i, r in enumerate(op.results) if r is value)


def refusal(op: Operation, why: str, fix: str | None = None) -> UnsupportedError:
    """That an op has no place in a kernel."""
    return UnsupportedError(f"{op.name} cannot be computed in a kernel", where=where(op), why=why, fix=fix)


def elsewhere(op: Operation) -> str | None:
    """What to do about an op that has no row: where XLA runs it, compile for that."""
    return "compile for xla:cpu, which runs it" if type(op) in RUN_BY_XLA else None
