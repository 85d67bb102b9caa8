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


def weights_as_inputs(program: Program) -> tuple[Program, list[Array]]:
    """A copy of a program with its weights as inputs after the others, and their arrays; in other functions constants.

    A constant of a type that is all there is to a weight says the same; large ones are main's.
    """
    moved = program.clone()
    arrays: list[Array] = []
    for name, readers in read_weights(moved).items():
        if name not in moved.weights:
            raise InvalidModelError(f"the weight @{name} has no data", fix="reduce the model that has it")
        array = np.array(moved.weights[name], order="C")
        outside = [op for op in readers if not moved.main.is_ancestor(op)]
        for op in outside:
            Rewriter.replace_op(op, hlo.ConstantOp.of(value=ElementsAttr.of(array), location=op.location))
        if len(outside) == len(readers):
            continue
        arg = add_input(moved, readers[0].result.type, fresh_name(moved, name))
        for op in readers:
            if op not in outside:
                op.result.replace_all_uses_with(arg)
                Rewriter.erase_op(op)
        arrays.append(array)
    return moved, arrays
