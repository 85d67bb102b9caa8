"""How the positions that a kernel reads and writes grow: from row to row, from program to program, in multiples."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from xdsl.ir import Block, Operation, SSAValue

from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.tile import static_shape


def rise(value: SSAValue, group: int = 0) -> int | None:
    """By how much a matrix of positions rises from one row to the next; None where it is not the same everywhere, or
    within each group of so many rows."""
    op = value.owner
    shape = static_shape(value)
    if len(shape) < 2 or shape[0] == 1 or isinstance(op, tile.ConstantOp):
        return 0
    if isinstance(op, tile.IotaOp):
        return int(op.axis == 0)
    if isinstance(op, tile.CastOp) and isinstance(op.operand.owner, tile.IotaOp):
        return rise(op.operand)
    if isinstance(op, tile.BroadcastOp):
        return rise(op.operand, group) if static_shape(op.operand)[:1] == shape[:1] else 0
    if group and isinstance(op, tile.ElementwiseOp) and op.function_name in _PARTS:
        return _of_part(op, group)
    return _of_terms(op, lambda term: rise(term, group))


_PARTS = ("divide_positive", "modulo_positive")


def _of_part(op: tile.ElementwiseOp, group: int) -> int | None:
    """By how much a quotient or a remainder rises within groups of rows that lie between two multiples of a size."""
    number, size = op.operands[0], _number(op.operands[1])
    slope = rise(number, group)
    if slope == 0 and size is not None:
        return 0
    if slope != 1 or not size or size % group or multiple(number, group, 0) % group:
        return None
    return int(op.function_name == "modulo_positive")


def advance(value: SSAValue) -> int | None:
    """By how much positions rise from one program to the next; None where it is not the same for all."""
    op = value.owner
    if isinstance(op, tile.ConstantOp | tile.IotaOp):
        return 0
    if isinstance(op, tile.ProgramIdOp):
        return 1 if op.axis.value.data == 0 else None
    if isinstance(op, tile.BroadcastOp):
        return advance(op.operand)
    return _of_terms(op, advance)


def _of_terms(op: Operation | Block, slope: Callable[[SSAValue], int | None]) -> int | None:
    """By how much sums, differences and multiples rise, of values that rise by a slope each."""
    if not isinstance(op, tile.ElementwiseOp) or op.function_name not in ("add", "subtract", "multiply"):
        return None
    first, second = map(slope, op.operands)
    if first is None or second is None:
        return None
    if op.function_name != "multiply":
        return first + second if op.function_name == "add" else first - second
    if (first, second) == (0, 0):
        return 0
    factor = next((number for v in op.operands if (number := _number(v)) is not None), None)
    return None if factor is None else (first or second) * factor


def multiple(value: SSAValue, lanes: int, axis: int = -1) -> int:
    """What the positions at which pieces of so many lanes, along the last axis or another, begin are multiples of; 0
    where all are 0."""
    op, shape = value.owner, static_shape(value)
    if isinstance(op, Block):
        if not isinstance(loop := op.parent_op(), tile.ForOp) or value is not op.args[0]:
            return 1
        return gcd(multiple(loop.lower, lanes, axis), loop.stride)
    if (number := _number(value)) is not None:
        return abs(number)
    if isinstance(op, tile.IotaOp) and op.axis == range(len(shape))[axis]:
        return lanes if shape[axis] % lanes == 0 else 1
    if isinstance(op, tile.BroadcastOp | tile.CastOp):
        return multiple(op.operand, lanes, axis)
    if not isinstance(op, tile.ElementwiseOp) or op.function_name not in ("add", "subtract", "multiply"):
        return 1
    first, second = (multiple(v, lanes, axis) for v in op.operands)
    return first * second if op.function_name == "multiply" else gcd(first, second)


def _number(value: SSAValue) -> int | None:
    """The integer that a constant repeats."""
    return int(value.owner.value.splat()) if isinstance(value.owner, tile.ConstantOp) else None


__all__ = ["advance", "multiple", "rise"]
