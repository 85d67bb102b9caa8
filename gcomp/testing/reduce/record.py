"""Given inputs, carried along: values that a reduction turns into inputs keep what they were in the failing run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from gcomp import dims
from gcomp.dtypes import dtype_of
from gcomp.ir.program import Port, Program
from gcomp.reference.interpreter import Interpreter
from gcomp.reference.numpy.conversion import convert
from gcomp.reference.table import Value

Array = np.ndarray[Any, Any]
_MOST_BYTES = 1 << 30


def record_values(program: Program, inputs: Sequence[Array]) -> dict[str, Array]:
    """Names every value of main, in place, and gives what it holds in a run on `inputs`; the largest are left out.

    An op that the reduction cuts out leaves an input of its value's name, so that inputs for a candidate are at hand.
    """
    known = {port.name: array for port, array in zip(program.inputs(), inputs, strict=False)}
    names = {op: f"v{i}" for i, op in enumerate(program.block.ops)}
    for op, name in names.items():
        for j, result in enumerate(op.results):
            result.name_hint = f"{name}_{j}" if j else name
    total = 0

    def look(op: Operation, results: Sequence[Value]) -> None:
        nonlocal total
        if op not in names:
            return
        for value, result in zip(op.results, results, strict=True):
            if isinstance(result, np.ndarray) and value.name_hint is not None and total < _MOST_BYTES:
                array = cast(Array, result)
                total += array.nbytes
                known[value.name_hint] = array

    Interpreter(program, observer=look).run(inputs)
    return known


def recorded_inputs(program: Program, known: Mapping[str, Array]) -> list[Array] | None:
    """Recorded inputs for a candidate, cut to its shapes; None where one was not recorded or does not fit."""
    arrays = [_fit(port, known.get(port.name)) for port in program.inputs()]
    return None if any(a is None for a in arrays) else cast("list[Array]", arrays)


def carrier(known: Mapping[str, Array] | None) -> Callable[[Program], list[Array] | None] | None:
    """`recorded_inputs`, as a function of a candidate."""
    return None if known is None else lambda program: recorded_inputs(program, known)


def _fit(port: Port, array: Array | None) -> Array | None:
    if array is None or array.ndim != len(port.shape):
        return None
    sizes = [n if dims.symbols_of(s) else cast(int, s) for s, n in zip(port.shape, array.shape, strict=True)]
    if any(size > n for size, n in zip(sizes, array.shape, strict=True)):
        return None
    return convert(array[tuple(slice(0, size) for size in sizes)], dtype=dtype_of(port.dtype))
