"""Weights of a program as further inputs, so that its text and its arguments say all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.rewriter import Rewriter

from gcomp.errors import InvalidModelError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.elements import ElementsAttr
from gcomp.ir.program import Program
from gcomp.testing.reduce.signature import add_input, fresh_name, read_weights

Array = np.ndarray[Any, Any]


def inline_weights(program: Program) -> bool:
    """Make every weight a constant, in place, so that the text says all; whether there were any."""
    found = False
    for name, readers in read_weights(program).items():
        for op in readers if name in program.weights else ():
            constant = hlo.ConstantOp.of(value=ElementsAttr.of(program.weights[name]), location=op.location)
            Rewriter.replace_op(op, constant)
            found = True
    return found


def weights_as_inputs(program: Program) -> tuple[str, list[Array]]:
    """The program's text with its weights as inputs after the others, and their arrays. Only main's are moved."""
    moved = program.clone()
    arrays: list[Array] = []
    for name, readers in read_weights(moved).items():
        if name not in moved.weights:
            raise InvalidModelError(f"the weight @{name} has no data", fix="reduce the model that has it")
        arg = add_input(moved, readers[0].result.type, fresh_name(moved, name))
        for op in readers:
            op.result.replace_all_uses_with(arg)
            Rewriter.erase_op(op)
        arrays.append(np.array(moved.weights[name], order="C"))
    return moved.text(), arrays
