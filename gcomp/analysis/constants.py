"""What is known of values before the program runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.ir import stablehlo as hlo
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Program

Array = np.ndarray[Any, Any]


def stored_array(value: SSAValue, program: Program) -> Array | None:
    """The array of a constant or of a weight; None for anything else, and for a weight of IR text without its data."""
    op = value.owner
    if isinstance(op, hlo.ConstantOp):
        return op.elements_attr.array()
    if isinstance(op, WeightOp) and op.symbol in program.weights:
        return program.weights[op.symbol]
    return None
