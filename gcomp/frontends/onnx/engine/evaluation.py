"""The constant that an SSA value is, when it is computed from constants alone.

Attributes-turned-inputs (scales of a Resize, bounds of a Range) are often computed by a few ops on constants. The few
ops are run by the reference interpreter, only when an importer asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from gcomp.errors import UnsupportedError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program
from gcomp.ir.types import static_shape

_MAX_OPS = 256
_MAX_ELEMENTS = 4096


def evaluate(program: Program, value: SSAValue) -> np.ndarray[Any, Any] | None:
    """The array that `value` always holds; None when it depends on inputs or sizes, or is large or long to compute."""
    ops = _slice(value)
    if ops is None:
        return None
    from gcomp.reference.interpreter import evaluate_op

    arrays: dict[SSAValue, Any] = {}
    for op in ops:
        try:
            results = evaluate_op(op, [arrays[v] for v in op.operands], program.weights)
        except UnsupportedError:
            return None
        arrays.update(zip(op.results, results, strict=True))
    return np.asarray(arrays[value])


def _slice(value: SSAValue) -> list[Operation] | None:
    """The ops that compute `value` from constants, in order, or None."""
    found: dict[Operation, None] = {}
    pending = [(value, False)]
    while pending:
        current, done = pending.pop()
        op = current.owner
        if not isinstance(op, Operation) or not _simple(op) or not _small(current) or len(found) > _MAX_OPS:
            return None
        if done:
            found.setdefault(op)
        elif op not in found:
            if not (op.operands or isinstance(op, hlo.ConstantOp | hlo.IotaOp | WeightOp)):
                return None
            pending.append((current, True))
            pending += [(operand, False) for operand in op.operands]
    return list(found)


def _small(value: SSAValue) -> bool:
    shape = static_shape(value.type)
    return shape is not None and int(np.prod(shape, dtype=np.int64)) <= _MAX_ELEMENTS


def _simple(op: Operation) -> bool:
    return isinstance(op, hlo.ReduceOp) or not (op.regions or isinstance(op, hlo.OptimizationBarrierOp))
