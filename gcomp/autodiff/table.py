"""The kinds of rows of the table of derivatives: a row takes tangents forward and cotangents backward through an op.

`gcomp.autodiff.sweeps.ROWS` is the whole table; `gcomp.autodiff.rows` fills it, a file for each family of ops. Forward
and reverse mode come from the same text. A row is one of these:

    partials(hlo.SineOp, ...)       an elementwise op: its derivative in each operand, a factor of tangent and cotangent
    linear(hlo.ReverseOp, ...)      tangents go through the op itself, and cotangents through its transpose
    tangents(hlo.SortOp)(...)       how tangents go; the cotangents' way is found by transposing what that builds
    expands(hlo.CompositeOp)(...)   the op is other ops, and these have rows
    nothing("...", hlo.FloorOp)     the derivative is zero wherever there is one, or no operand has one
    refuses("...", hlo.InfeedOp)    there is no derivative, for the reason given
    chooses(hlo.ReduceOp)(...)      the row depends on the op's body or types
    register(row, hlo.WhileOp)      a row of its own (control flow)

A cotangent of complex numbers is linear in the result's, and not its conjugate, as JAX has it: the two go with tangents
as the real part of the sum of products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from xdsl.ir import Operation, SSAValue

from gcomp.autodiff.sweeps import Forward, Maybe, Reverse, Row, register
from gcomp.errors import UnsupportedError
from gcomp.ir.builder import Builder
from gcomp.ir.locations import where

Partial = Callable[[Builder, Any, SSAValue], SSAValue]
"""Of an op and a tangent (or cotangent) of the result's type: its product with the derivative."""
Transpose = Callable[[Builder, Any, SSAValue, int], Maybe]
"""Of an op, the result's cotangent and the number of an operand: that operand's cotangent."""
Tangents = Callable[[Builder, Any, Sequence[Maybe]], Sequence[Maybe]]
"""Of an op and its operands' tangents: its results' tangents, each linear in those."""
Expansion = Callable[[Builder, Any], Sequence[SSAValue]]
"""Of an op: values equal to its results, computed by other ops."""


# ---- elementwise ops ----


@dataclass(frozen=True)
class Partials(Row):
    """An elementwise op of operands that have the result's type."""

    factors: tuple[Partial | None, ...]

    def push(self, sweep: Forward, op: Operation) -> None:
        for operand, factor in zip(op.operands, self.factors, strict=True):
            if factor is not None and (tangent := sweep.get(operand)) is not None:
                sweep.add(op.results[0], factor(sweep.b, op, tangent))

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        (cotangent,) = cotangents
        for operand, factor in zip(op.operands, self.factors, strict=True):
            if factor is not None and cotangent is not None and sweep.wants(operand):
                sweep.add(operand, factor(sweep.b, op, cotangent))


def partials(op: type[Operation], *factors: Partial | None) -> Row:
    """The row of an elementwise op: a factor for each operand, None where the derivative is zero."""
    return register(Partials(factors), op)


# ---- linear ops ----


@dataclass(frozen=True)
class Linear(Row):
    """An op that is linear in some operands: in all of them together, or (`each`) in each of them, as a product is."""

    transpose: Transpose
    operands: Callable[[Any], Sequence[int]]
    each: bool = False

    def push(self, sweep: Forward, op: Operation) -> None:
        places = self.operands(op)
        known = [i for i in places if sweep.get(op.operands[i]) is not None]
        for group in [[i] for i in known] if self.each else [places] if known else []:
            copy = op.clone()
            for i in group:
                copy.operands[i] = sweep.derivative_at(op.operands[i])
            sweep.add(op.results[0], sweep.b.insert(copy).results[0])

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        (cotangent,) = cotangents
        for i in self.operands(op):
            operand = op.operands[i]
            if cotangent is not None and sweep.wants(operand):
                sweep.add(operand, self.transpose(sweep.b, op, cotangent, i))


def linear(op: type[Operation], transpose: Transpose, *operands: int, every: bool = False, each: bool = False) -> Row:
    """The row of a linear op: which operands it is linear in (or `every` one), and the transpose."""

    def places(op: Operation) -> Sequence[int]:
        return range(len(op.operands)) if every else operands

    return register(Linear(transpose, places, each), op)


# ---- ops that are given by how tangents go ----


@dataclass(frozen=True)
class ByTangents(Row):
    """The results' tangents are linear in the operands'; cotangents go the same way back."""

    tangents: Tangents

    def push(self, sweep: Forward, op: Operation) -> None:
        results = self.tangents(sweep.b, op, [sweep.get(v) for v in op.operands])
        for result, tangent in zip(op.results, results, strict=True):
            sweep.add(result, tangent)

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        self.pull_for(range(len(op.operands)), sweep, op, cotangents)

    def pull_for(self, places: Sequence[int], sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        """Add to the cotangents of some operands."""
        # What the rule builds on tangents is linear: its cotangents do not depend on the tangents it was built on.
        b = sweep.b
        zeros = {i: b.full_like(op.operands[i], 0) for i in places if sweep.wants(op.operands[i])}
        if not zeros:
            return
        results, ops = record_ops(b, lambda: self.tangents(b, op, [zeros.get(i) for i in range(len(op.operands))]))
        inner = sweep.inner(ops, zeros.values())
        for result, cotangent in zip(results, cotangents, strict=True):
            if result is not None:
                inner.add(result, cotangent)
        inner.run(ops)
        for i, zero in zeros.items():
            sweep.add(op.operands[i], inner.get(zero))


def tangents(*ops: type[Operation]) -> Callable[[Tangents], Tangents]:
    """Register a function that gives the results' tangents."""

    def decorate(function: Tangents) -> Tangents:
        register(ByTangents(function), *ops)
        return function

    return decorate


# ---- ops that are other ops ----


@dataclass(frozen=True)
class Expanded(Row):
    """The derivative is that of the ops that compute the same."""

    expand: Expansion

    def push(self, sweep: Forward, op: Operation) -> None:
        results, ops = record_ops(sweep.b, lambda: self.expand(sweep.b, op))
        sweep.run(ops)
        for result, value in zip(op.results, results, strict=True):
            sweep.add(result, sweep.get(value))

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        results, ops = record_ops(sweep.b, lambda: self.expand(sweep.b, op))
        sweep.enter(ops)
        for result, cotangent in zip(results, cotangents, strict=True):
            sweep.add(result, cotangent)
        sweep.run(ops)


def expands(*ops: type[Operation]) -> Callable[[Expansion], Expansion]:
    """Register a function that computes the results by other ops."""

    def decorate(function: Expansion) -> Expansion:
        register(Expanded(function), *ops)
        return function

    return decorate


# ---- ops of which the row depends on the op ----


@dataclass(frozen=True)
class Chosen(Row):
    """The row that a function chooses."""

    choose: Callable[[Any], Row]

    def row_for(self, op: Operation) -> Row:
        return self.choose(op)

    def push(self, sweep: Forward, op: Operation) -> None:
        self.choose(op).push(sweep, op)

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        self.choose(op).pull(sweep, op, cotangents)


def chooses(*ops: type[Operation]) -> Callable[[Callable[[Any], Row]], Callable[[Any], Row]]:
    """Register a function that chooses the row."""

    def decorate(function: Callable[[Any], Row]) -> Callable[[Any], Row]:
        register(Chosen(function), *ops)
        return function

    return decorate


# ---- ops without a derivative ----


@dataclass(frozen=True)
class Nothing(Row):
    """The derivative is zero, for the reason given."""

    reason: str

    is_zero = True

    def push(self, sweep: Forward, op: Operation) -> None:
        pass

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        pass


@dataclass(frozen=True)
class Refused(Row):
    """There is no derivative, for the reason given."""

    reason: str
    fix: str

    def push(self, sweep: Forward, op: Operation) -> None:
        self.refuse(op)

    def pull(self, sweep: Reverse, op: Operation, cotangents: Sequence[Maybe]) -> None:
        self.refuse(op)

    def refuse(self, op: Operation) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(f"{op.name} cannot be differentiated", where=where(op), why=self.reason, fix=self.fix)


def nothing(reason: str, *ops: type[Operation]) -> Row:
    """Say why the derivative of op classes is zero."""
    return register(Nothing(reason), *ops)


def refuses(reason: str, *ops: type[Operation], fix: str = "leave it out of what is differentiated") -> Row:
    """Say why op classes have no derivative, and what to do."""
    return register(Refused(reason, fix), *ops)


# ---- what was built ----

R = TypeVar("R")


def record_ops(b: Builder, make: Callable[[], R]) -> tuple[R, list[Operation]]:
    """What `make` returns, and the ops that it put where `b` inserts."""
    block, anchor = b.point.block, b.point.insert_before
    before = block.last_op if anchor is None else anchor.prev_op
    made = make()
    current = block.first_op if before is None else before.next_op
    ops: list[Operation] = []
    while current is not None and current is not anchor:
        ops.append(current)
        current = current.next_op
    return made, ops
