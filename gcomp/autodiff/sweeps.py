"""Going through ops with tangents, forward, or with cotangents, backward, by the row of each op.

`gcomp.autodiff.table` has the kinds of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from gcomp.autodiff.joining import Part, join
from gcomp.dtypes import is_complex, is_float
from gcomp.errors import InternalError, UnsupportedError
from gcomp.ir.builder import Builder
from gcomp.ir.effects import is_side_effect_free
from gcomp.ir.locations import where
from gcomp.ir.types import compatible, dtype_text, is_tensor
from gcomp.ir.walking import inputs_of

Maybe = SSAValue | None
"""A tangent or cotangent; None is a zero that nobody computes."""


class Row(ABC):
    """How derivatives go through an op."""

    @abstractmethod
    def push(self, sweep: Forward, op: Operation) -> None:
        """Set the results' tangents, given those of the operands."""

    @abstractmethod
    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        """Add to the operands' cotangents, given those of the results."""

    is_zero = False
    """Whether no result has a derivative in any operand."""

    def row_for(self, op: Operation) -> Row:
        """The row itself, or the one that it chooses for an op."""
        return self


ROWS: dict[type[Operation], Row] = {}
"""Op class -> its row."""


def register(row: Row, *ops: type[Operation]) -> Row:
    """Make a row that of op classes."""
    for op in ops:
        ROWS[op] = row
    return row


def row_of(op: Operation) -> Row:
    """The row of an op. Raises UnsupportedError where there is none."""
    row = ROWS.get(type(op))
    if row is None:
        raise UnsupportedError(f"there is no derivative of {op.name}", where=where(op), why="no rule is known for it")
    return row.row_for(op)


def differentiable(value: SSAValue) -> bool:
    """Whether a value is a tensor of floats or of complex numbers."""
    return is_tensor(value.type) and (is_float(text := dtype_text(value.type)) or is_complex(text))


def reached_values(ops: Iterable[Operation], sources: Iterable[SSAValue]) -> set[SSAValue]:
    """The values that some of `sources` have a derivative in, as far as ops in order tell without being looked into."""
    found = {v for v in sources if differentiable(v)}
    for op in ops:
        if any(v in found for v in inputs_of(op)) and not row_of(op).is_zero:
            found.update(result for result in op.results if differentiable(result))
    return found


def sweep_dead_block(block: Block, *, pure: bool = False) -> None:
    """Remove ops without effect whose results nobody uses, in regions too; `pure` says that no op there has any.

    Outside of a module, a composite does not find its decomposition, and so cannot tell by itself.
    """
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        for region in op.regions:
            for inner in region.blocks:
                sweep_dead_block(inner, pure=pure)
        if op.results and all(r.first_use is None for r in op.results) and (pure or is_side_effect_free(op)):
            Rewriter.erase_op(op)
        op = previous


class _Sweep:
    """Derivatives by value, and a builder for what computes them."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.known: dict[SSAValue, SSAValue] = {}

    def get(self, value: SSAValue) -> Maybe:
        """The derivative at a value; None is zero."""
        return self.known.get(value)

    def derivative_at(self, value: SSAValue) -> SSAValue:
        """The derivative at a value, a zero included."""
        found = self.known.get(value)
        return self.b.full_like(value, 0) if found is None else found

    def put(self, value: SSAValue, derivative: SSAValue) -> None:
        """The derivative at a value, in place of the one that there was."""
        if not compatible(derivative.type, value.type):
            raise InternalError(
                f"a derivative of type {derivative.type} was computed for a value of type {value.type}",
                where=where(value.owner) if isinstance(value.owner, Operation) else None,
            )
        self.known[value] = derivative

    def add(self, value: SSAValue, derivative: Maybe) -> None:
        """Add to the derivative at a value; what cannot be differentiated has none."""
        if derivative is not None and differentiable(value):
            known = self.known.get(value)
            self.put(value, derivative if known is None else self.b.add(known, derivative))

    @contextmanager
    def at(self, point: InsertPoint) -> Generator[None]:
        """Insert at another point inside the `with`."""
        previous, self.b.point = self.b.point, point
        try:
            yield
        finally:
            self.b.point = previous


class Forward(_Sweep):
    """Tangents of values, each computed right after its value."""

    def run(self, ops: Sequence[Operation]) -> None:
        """Go through ops in order."""
        for op in ops:
            if any(v in self.known for v in inputs_of(op)) and any(map(differentiable, op.results)):
                with self.at(InsertPoint.after(op)), self.b.at(op.location):
                    row_of(op).push(self, op)

    def inside(self) -> Forward:
        """A sweep for ops in a region, which sees the tangents from outside of it."""
        inner = Forward(self.b)
        inner.known = dict(self.known)
        return inner


class Reverse(_Sweep):
    """Cotangents of values, computed where the builder inserts, after all the ops that are gone through."""

    def __init__(self, b: Builder, active: Iterable[SSAValue]) -> None:
        super().__init__(b)
        self.active = set(active)
        """The values that what is differentiated for has a derivative in."""
        self._parts: dict[SSAValue, list[Part]] = {}
        """Cotangents of slices that are not added to those of their values yet: they may stand side by side."""

    def get(self, value: SSAValue) -> Maybe:
        self._settle(value)
        return super().get(value)

    def derivative_at(self, value: SSAValue) -> SSAValue:
        self._settle(value)
        return super().derivative_at(value)

    def put(self, value: SSAValue, derivative: SSAValue) -> None:
        self._parts.pop(value, None)
        super().put(value, derivative)

    def add(self, value: SSAValue, derivative: Maybe) -> None:
        part = None if derivative is None else Part.of(derivative)
        if part is not None and differentiable(value):
            self._parts.setdefault(value, []).append(part)
        elif derivative is not None:
            self._settle(value)
            super().add(value, derivative)

    def _settle(self, value: SSAValue) -> None:
        """Add the parts."""
        if parts := self._parts.pop(value, None):
            super().add(value, join(self.b, parts))

    def wants(self, value: SSAValue) -> bool:
        """Whether the cotangent of a value is of use."""
        return value in self.active

    def run(self, ops: Sequence[Operation]) -> None:
        """Go through ops from the last to the first."""
        for op in reversed(ops):
            if not any(v in self.active for v in inputs_of(op)):
                continue
            with self.b.at(op.location):
                cotangents = [self.get(result) for result in op.results]
                if any(c is not None for c in cotangents):
                    row_of(op).pull(self, op, cotangents)

    def enter(self, ops: Sequence[Operation]) -> None:
        """Let ops be gone through that were built just now."""
        self.active |= reached_values(ops, self.active)

    def inner(self, ops: Sequence[Operation], sources: Iterable[SSAValue]) -> Reverse:
        """A sweep through ops that others know nothing of, for the cotangents of `sources`."""
        return Reverse(self.b, reached_values(ops, sources))

    def take(self, value: SSAValue) -> SSAValue:
        """The cotangent of a value so far, which is going to be replaced by what it is part of."""
        found = self.derivative_at(value)
        self.known.pop(value, None)
        return found
