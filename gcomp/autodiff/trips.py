"""How often a loop runs at most, where a counter and its limit say it, and which values go with the iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xdsl.ir import BlockArgument, SSAValue

from gcomp import dims
from gcomp.dims import DimError, Size
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import DimOp
from gcomp.ir.program import Program
from gcomp.ir.types import dtype_text, rank_of

_LONGEST = 63
"""A counter that doubles is beyond all sizes after so many iterations."""


@dataclass(frozen=True)
class Trips:
    """A bound on the number of iterations; `exact` where it is the number."""

    most: Size
    exact: bool


def trips_of(program: Program, op: Any) -> Trips | None:
    """The trips of a while, or None where its form does not tell."""
    test = op.cond.block.last_op.operands[0]
    terms = list(_terms(test))
    found = [trips for term in terms if (trips := _of_term(program, op, term)) is not None]
    if not found:
        return None
    if len(terms) == 1:
        return found[0]
    known = [t.most for t in found if isinstance(t.most, int)]
    return Trips(min(known) if known else found[0].most, exact=False)


def _terms(value: SSAValue) -> Iterator[SSAValue]:
    """What must hold, all of it, for the loop to go on."""
    if isinstance(value.owner, hlo.AndOp):
        for operand in value.owner.operands:
            yield from _terms(operand)
    else:
        yield value


_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE", "EQ": "EQ"}


def _of_term(program: Program, op: Any, term: SSAValue) -> Trips | None:
    test = term.owner
    if not isinstance(test, hlo.CompareOp) or rank_of(test.lhs) or rank_of(test.rhs):
        return None
    direction: str = test.value("comparison_direction")
    for counter, limit, way in (
        (test.lhs, test.rhs, direction), (test.rhs, test.lhs, _MIRRORED[direction])
    ):  # fmt: skip
        if isinstance(counter, BlockArgument) and counter.owner is op.cond.block:
            trips = _count_trips(program, op, counter.index, limit, way)
            if trips is not None:
                return trips
    return None


def _count_trips(program: Program, op: Any, place: int, limit: SSAValue, way: str) -> Trips | None:
    start = _bound(op, op.operands[place], 0)
    change = op.body.block.last_op.operands[place].owner
    own = op.body.block.args[place]
    if start is None or not isinstance(change, hlo.AddOp | hlo.SubtractOp | hlo.MultiplyOp):
        return None
    other = change.rhs if change.lhs is own else change.lhs if change.rhs is own else None
    step = None if other is None else _bound(op, other, 0)
    if not isinstance(step, int) or (isinstance(change, hlo.SubtractOp) and change.lhs is not own):
        return None
    if isinstance(change, hlo.MultiplyOp):
        return _doubling(program, op, start, step, limit, way)
    step = -step if isinstance(change, hlo.SubtractOp) else step
    up = step > 0
    end, exact = _bound(op, limit, 0), True
    if end is None:
        end, exact = _bound(op, limit, 1 if up else -1), False
    if end is None or step == 0 or way not in (("LT", "LE", "NE") if up else ("GT", "GE", "NE")):
        return None
    if way == "NE" and not (abs(step) == 1 and exact):
        return None
    span = (end - start if up else start - end) + (1 if way in ("LE", "GE") else 0)
    count = span if abs(step) == 1 else dims.ceildiv(span, abs(step))
    return Trips(max(count, 0) if isinstance(count, int) else program.ranges.greater(count, 0), exact)


def _doubling(program: Program, op: Any, start: Size, step: int, limit: SSAValue, way: str) -> Trips | None:
    if not isinstance(start, int) or start < 1 or step < 2 or way not in ("LT", "LE"):
        return None
    end = _bound(op, limit, 1)
    most = None if end is None else program.ranges.bounds(end)[1]
    if most is None:
        return Trips(_LONGEST, exact=False)
    iterations, value = 0, start
    while value < most + (way == "LE"):
        iterations, value = iterations + 1, value * step
    return Trips(iterations, exact=isinstance(end, int) and _bound(op, limit, 0) is not None)


def _bound(op: Any, value: SSAValue, side: int, depth: int = 16) -> Size | None:
    """A whole number: its size as a formula, or (`side` 1 or -1) one that it is not above, or not below."""
    owner = value.owner
    if depth == 0:
        return None
    if isinstance(value, BlockArgument):
        return _of_argument(op, value, side, depth)
    match owner:
        case hlo.ConstantOp():
            array = owner.elements_attr.array()
            return int(array.reshape(-1)[0]) if array.size and array.dtype.kind in "iu" else None
        case DimOp():
            return owner.formula
        case hlo.ConvertOp() | hlo.ReshapeOp():
            return _bound(op, owner.operand, side, depth - 1)
        case hlo.MinimumOp() | hlo.MaximumOp():
            return _of_extreme(op, owner, side, depth)
        case hlo.AddOp() | hlo.SubtractOp() | hlo.MultiplyOp():
            return _of_arithmetic(op, owner, side, depth)
        case _:
            return None


def _of_argument(op: Any, value: BlockArgument, side: int, depth: int) -> Size | None:
    """A carried value that stays what it was at first."""
    if value.owner not in (op.cond.block, op.body.block):
        return None
    body = op.body.block
    if body.last_op.operands[value.index] is not body.args[value.index]:
        return None
    return _bound(op, op.operands[value.index], side, depth - 1)


def _of_extreme(op: Any, owner: Any, side: int, depth: int) -> Size | None:
    least = isinstance(owner, hlo.MinimumOp)
    found = [_bound(op, v, side, depth - 1) for v in owner.operands]
    known = [f for f in found if f is not None]
    if len(known) == 2:
        return (dims.dmin if least else dims.dmax)(*known)
    # A minimum is not above either of the two.
    return known[0] if known and side == (1 if least else -1) else None


def _of_arithmetic(op: Any, owner: Any, side: int, depth: int) -> Size | None:
    flipped = -side if isinstance(owner, hlo.SubtractOp) else side
    exact = isinstance(owner, hlo.MultiplyOp)
    left = _bound(op, owner.lhs, 0 if exact else side, depth - 1)
    right = _bound(op, owner.rhs, 0 if exact else flipped, depth - 1)
    if left is None or right is None:
        return None
    try:
        if isinstance(owner, hlo.AddOp):
            return left + right
        return left - right if isinstance(owner, hlo.SubtractOp) else left * right
    except DimError:
        return None


# ---- what is a line in the number of the iteration
# ------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A whole number that is `start + slope * iteration`, the first iteration being 0."""

    start: Size
    slope: int


def line_of(op: Any, value: SSAValue, depth: int = 16) -> Line | None:
    """The line that a value of a loop's body is, made of counters, constants and sizes; None where it is none.

    Nothing is converted on the way, nor unsigned: a sum that wraps around is right where the line is in range.
    """
    body, owner = op.body.block, value.owner
    if depth == 0 or dtype_text(value.type) not in ("i32", "i64"):
        return None
    if isinstance(value, BlockArgument) and owner is body:
        start, change = _bound(op, op.operands[value.index], 0), body.last_op.operands[value.index]
        if start is None:
            return None
        if change is value:
            return Line(start, 0)
        if isinstance(change.owner, hlo.AddOp) and value in change.owner.operands:
            step = _bound(op, change.owner.rhs if change.owner.lhs is value else change.owner.lhs, 0)
            return Line(start, step) if isinstance(step, int) else None
        return None
    match owner:
        case hlo.AddOp() | hlo.SubtractOp():
            left, right = (line_of(op, v, depth - 1) for v in owner.operands)
            if left is None or right is None:
                return None
            if isinstance(owner, hlo.AddOp):
                return Line(left.start + right.start, left.slope + right.slope)
            return Line(left.start - right.start, left.slope - right.slope)
        case _:
            known = _bound(op, value, 0)
            return None if known is None else Line(known, 0)


__all__ = ["Line", "Trips", "line_of", "trips_of"]
