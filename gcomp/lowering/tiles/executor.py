"""A scheduled launch on arrays: its kernels in order, in the evaluator of tile programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import evaluate as value_of
from gcomp.dtypes import dtype_of
from gcomp.errors import VerificationError
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.locations import where
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.evaluate import Memory, Order, run
from gcomp.lowering.tiles.schedules.kernel import Binding, Scheduled

Array = np.ndarray[Any, Any]


def execute(
    launch: LaunchOp,
    scheduled: Scheduled,
    inputs: Sequence[Array],
    sizes: Mapping[str, int],
    lies: Collection[tuple[int, int]] = (),
    order: Order = "together",
) -> list[Array]:
    """The results of a launch as its tile programs compute them. VerificationError where they misuse memory.

    `lies` are pairs (operand, result) such that the result may lie over the operand: whatever is written of the result
    spoils the operand there.
    """
    shapes = [tuple([value_of(n, sizes) for n in shape_of(r)]) for r in launch.results]
    outputs = [Memory.empty(int(np.prod(s)), memory_type(r)) for s, r in zip(shapes, launch.results, strict=True)]
    scratch = [Memory.empty(value_of(s.count, sizes), dtype_text(tile.tile((), s.element))) for s in scheduled.scratch]
    given = [
        Memory.of(np.asarray(x).view(dtype_of(memory_type(v)))) for x, v in zip(inputs, launch.operands, strict=True)
    ]
    for i, j in lies:
        if (given[i].data.size, given[i].data.itemsize) == (outputs[j].data.size, outputs[j].data.itemsize):
            given[i].data = given[i].data.copy()
            outputs[j].below.append(given[i])

    def argument(binding: Binding) -> Memory | int:
        if binding.kind == "size":
            return value_of(binding.size, sizes)
        return {"input": given, "output": outputs, "scratch": scratch}[binding.kind][binding.index]

    for step in scheduled.steps:
        grid = [value_of(size, sizes) for size in step.grid]
        run(step.kernel, grid, [argument(binding) for binding in step.bindings], order)
    for j, memory in enumerate(outputs):
        if not memory.written.all():
            raise VerificationError(
                f"result {j} of a kernel is not written everywhere",
                where=where(launch),
                why=f"element {int(np.argmin(memory.written))} of {memory.data.size}",
            )
    return [
        memory.data.view(dtype_of(dtype_text(result.type))).reshape(shape)
        for memory, shape, result in zip(outputs, shapes, launch.results, strict=True)
    ]


def memory_type(value: SSAValue) -> str:
    """The element type in which memory holds a value."""
    dtype = dtype_text(value.type)
    return tile.HELD.get(dtype, dtype)
