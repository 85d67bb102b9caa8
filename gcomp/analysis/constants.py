"""What is known of values before the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.locations import fuse
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.roles import Role, role_of
from gcomp.ir.types import rank_of, shape_of

Array = np.ndarray[Any, Any]


def stored_array(value: SSAValue, program: Program) -> Array | None:
    """The array of a constant or of a weight; None for anything else, and for a weight of IR text without its data."""
    op = value.owner
    if isinstance(op, hlo.ConstantOp):
        return op.elements_attr.array()
    if isinstance(op, WeightOp) and op.symbol in program.weights:
        return program.weights[op.symbol]
    return None


def is_stored(value: SSAValue) -> bool:
    """Whether a value is a constant or a weight."""
    return isinstance(value.owner, hlo.ConstantOp | WeightOp)


def stored_along(value: SSAValue, axis: int) -> SSAValue | None:
    """The constant or weight that a value repeats along all other axes: a vector, or a single number."""
    op = value.owner
    if not isinstance(op, hlo.BroadcastInDimOp) or not is_stored(op.operand):
        return None
    if rank_of(op.operand) == 0:
        return op.operand
    along = op.value("broadcast_dimensions") == (axis,) and shape_of(op.operand) == (shape_of(value)[axis],)
    return op.operand if along else None


def is_finite(value: SSAValue, program: Program) -> bool:
    """Whether all elements are known to be numbers, neither infinite nor NaN: of what is stored, or of views of it."""
    while isinstance(value.owner, hlo.ReshapeOp | hlo.TransposeOp | hlo.ReverseOp):
        value = value.owner.operands[0]
    array = stored_array(value, program)
    return array is not None and bool(np.isfinite(array).all())


def is_constant(op: Operation) -> bool:
    """Whether an op only brings numbers in: a constant, an iota or a size, perhaps repeated, or of another type."""
    if isinstance(op, hlo.BroadcastInDimOp | hlo.ReshapeOp | hlo.ConvertOp):
        owner = op.operands[0].owner
        return isinstance(owner, Operation) and is_constant(owner)
    return role_of(op) is Role.GENERATOR


def place_of(ops: Sequence[Operation]) -> LocationAttr:
    """Where ops that compute together come from, in order: constants, which others may share, do not count."""
    computing = [op.location for op in ops if not is_constant(op)]
    return fuse(computing or [op.location for op in ops], most=None)
