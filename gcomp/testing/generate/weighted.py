"""Programs whose inputs become weights: read in main, again where they are used, inside regions, and in functions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Region, Use
from xdsl.rewriter import InsertPoint

from gcomp.ir.builder import Builder
from gcomp.ir.native import WeightOp
from gcomp.ir.program import Port, Program
from gcomp.ir.types import tensor_of
from gcomp.testing.generate.choices import Choices
from gcomp.testing.reduce.signature import drop_inputs

Array = np.ndarray[Any, Any]

_OFTEN, _IN_FUNCTION = 0.7, 0.15


def with_weights(
    program: Program, choices: Choices, value: Callable[[Port], Array | None], *, functions: bool = True
) -> list[int]:
    """Make weights of some inputs, in place, with what `value` gives for each; which inputs they were.

    One that has symbols, or no value, stays an input. Without `functions`, all reads are in main.
    """
    found: list[int] = []
    for i, port in enumerate(program.inputs()):
        array = value(port) if all(isinstance(n, int) for n in port.shape) else None
        arg = program.block.args[i]
        if array is None or arg.first_use is None or port.donated or not choices.flag(_OFTEN):
            continue
        name = f"w_{port.name}"
        program.weights.add(name, array)
        for use in [*arg.uses]:
            use.operation.operands[use.index] = _read(program, name, use, functions and choices.flag(_IN_FUNCTION))
        found.append(i)
    drop_inputs(program, found)
    return found


def _read(program: Program, name: str, use: Use, by_call: bool) -> Any:
    """The weight, before the op that uses it: by a call of a function that reads it, or at once."""
    b = Builder(program, InsertPoint.before(use.operation))
    if not by_call:
        return b.read_weight(name)
    read = WeightOp.read(name, tensor_of(use.operation.operands[use.index]))
    block = Block()
    block.add_ops([read, ReturnOp(*read.results)])
    types = [result.type for result in read.results]
    called = _fresh(f"reads_{name}", [f.sym_name.data for f in program.functions()])
    program.module.body.block.add_op(FuncOp(called, ([], types), Region(block), StringAttr("private")))
    call = CallOp(called, [], types)
    b.insert(call)
    return call.results[0]


def _fresh(base: str, taken: Collection[str]) -> str:
    return next(name for i in range(len(taken) + 1) if (name := f"{base}_{i}") not in taken)


__all__ = ["with_weights"]
