"""The text of tile kernels, run in Triton's interpreter beside the evaluator of tiles: a second opinion on printing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from gcomp.dims import evaluate as value_of
from gcomp.dtypes import dtype_of, is_float, text_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.executor import execute, memory_type
from gcomp.lowering.tiles.schedules import Scheduled
from gcomp.lowering.triton.interpret import Interpreter
from gcomp.lowering.triton.printing import print_kernel

Array = np.ndarray[Any, Any]

ROUNDINGS = 64.0
"""Units in the last place by which a result may differ: functions of libdevice are NumPy's in the interpreter, and sums
have another order there."""


def cross_check(
    launch: LaunchOp, scheduled: Scheduled, inputs: Sequence[Array], sizes: Mapping[str, int], interpreter: Interpreter
) -> list[str]:
    """Where a launch's printed kernels compute something else than its tile programs. The steps share their memory."""
    expected = execute(launch, scheduled, inputs, sizes)
    memory: dict[tuple[str, int], Array] = {}
    for i, (value, array) in enumerate(zip(launch.operands, inputs, strict=True)):
        memory["input", i] = np.ascontiguousarray(array).view(dtype_of(memory_type(value)))
    for j, result in enumerate(launch.results):
        memory["output", j] = np.zeros([value_of(n, sizes) for n in shape_of(result)], dtype_of(memory_type(result)))
    for k, scratch in enumerate(scheduled.scratch):
        kind = dtype_of(dtype_text(tile.tile((), scratch.element)))
        memory["scratch", k] = np.zeros(value_of(scratch.count, sizes), kind)
    for step in scheduled.steps:
        grid = [value_of(size, sizes) for size in step.grid]
        if 0 in grid:
            continue
        source, values = print_kernel(step), dict[str, Array | int]()
        for argument, binding in zip(source.arguments, step.bindings, strict=True):
            place = binding.kind, binding.index
            values[argument.name] = value_of(binding.size, sizes) if binding.kind == "size" else memory[place]
        found = interpreter.run(source, values, grid)
        for argument, binding in zip(source.arguments, step.bindings, strict=True):
            if argument.name in found:
                memory[binding.kind, binding.index] = found[argument.name]
    actual = [memory["output", j].view(e.dtype).reshape(e.shape) for j, e in enumerate(expected)]
    return [f"result {j}: {why}" for j, (e, a) in enumerate(zip(expected, actual, strict=True)) for why in apart(e, a)]


def apart(expected: Array, actual: Array) -> Iterator[str]:
    """Where arrays are further apart than rounding brings them; zeros of any sign, and NaN of any bits, are alike."""
    if not is_float(text_of(expected.dtype)):
        wrong = expected != actual
    else:
        tiny = float(np.finfo(np.float32 if expected.dtype.itemsize < 8 else np.float64).tiny)
        with np.errstate(all="ignore"):
            old, new = expected.astype(np.float64), actual.astype(np.float64)
            near = np.abs(old - new) <= np.maximum(ROUNDINGS * _spacing(expected), tiny)
            wrong = ~((old == new) | (np.isnan(old) & np.isnan(new)) | near)
    for place in np.argwhere(wrong)[:3]:
        index = tuple(int(i) for i in place)
        yield f"at {list(index)} the evaluator has {expected[index]}, Triton's interpreter {actual[index]}"


def _spacing(array: Array) -> Array:
    """A unit in the last place of each element, in the precision that is computed in; of narrow types, in their own."""
    eps = float(cast(Any, ml_dtypes.finfo(array.dtype)).eps) / (ROUNDINGS / 2 if array.dtype.itemsize < 4 else 1)
    return np.abs(array.astype(np.float64)) * eps
