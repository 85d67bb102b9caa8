"""Meeting a program's signature: inputs checked by name, symbols bound to sizes, constraints checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from gcomp import dims
from gcomp.dtypes import dtype_of, text_of
from gcomp.errors import InputError
from gcomp.ir.locations import where
from gcomp.ir.program import Port, Program
from gcomp.ir.types import UNKNOWN, shape_of

Array = np.ndarray[Any, Any]


def check_inputs(ports: Sequence[Port], inputs: Sequence[object]) -> list[Array]:
    """The inputs as arrays; the last ones may be left out where they have defaults.

    Raises InputError, naming the input, for a wrong count, rank or element type.
    """
    left_out = ports[len(inputs) :]
    if all(port.default is not None for port in left_out):
        inputs = [*inputs, *(np.asarray(port.default, dtype_of(port.dtype)) for port in left_out)]
    if len(inputs) != len(ports):
        names = ", ".join(port.name for port in ports)
        raise InputError(f"the program takes {len(ports)} inputs, got {len(inputs)}", why=f"its inputs are: {names}")
    arrays = [np.asarray(value) for value in inputs]
    for port, array in zip(ports, arrays, strict=True):
        if array.dtype != dtype_of(port.dtype):
            raise InputError(
                f"input '{port.name}' has element type {_text(array)}, expected {port.dtype}",
                fix=f"convert it to {dtype_of(port.dtype).name}",
            )
        if array.ndim != len(port.shape):
            raise InputError(f"input '{port.name}' has shape {array.shape}, expected {_shape(port)}")
    return arrays


def bind_sizes(program: Program, ports: Sequence[Port], arrays: Sequence[Array]) -> Mapping[str, int]:
    """The symbols' values. Raises InputError where sizes contradict each other, a range or a constraint."""
    entries = [
        (size, actual, f"dimension {axis} of input '{port.name}'")
        for port, array in zip(ports, arrays, strict=True)
        for axis, (size, actual) in enumerate(zip(port.shape, array.shape, strict=True))
        if size != UNKNOWN
    ]
    try:
        sizes = dims.bind(entries, program.ranges)
    except dims.DimError as error:
        raise InputError("the inputs do not fit the program's signature", why=str(error)) from None
    _check_constraints(program, sizes, frozenset())
    return sizes


def bind_results(
    program: Program, op: Operation, shapes: Sequence[tuple[int, ...]], known: Mapping[str, int]
) -> Mapping[str, int]:
    """The symbols' values once the results of a host step have these shapes. Raises InputError as `bind_sizes` does."""
    entries = [
        (dims.substitute(size, known), actual, f"dimension {axis} of result {i} of {where(op)}")
        for i, (result, shape) in enumerate(zip(op.results, shapes, strict=True))
        for axis, (size, actual) in enumerate(zip(shape_of(result), shape, strict=True))
    ]
    try:
        sizes = {**known, **dims.bind(entries, program.ranges)}
    except dims.DimError as error:
        raise InputError("a size computed from the inputs does not fit the program", why=str(error)) from None
    _check_constraints(program, sizes, frozenset(known))
    return sizes


def _check_constraints(program: Program, sizes: Mapping[str, int], before: frozenset[str]) -> None:
    """Check the constraints that these sizes decide and those known before did not."""
    try:
        broken = [
            why
            for constraint in program.constraints
            if (symbols := constraint.symbols) <= sizes.keys() and (not before or not symbols <= before)
            if (why := constraint.check(sizes)) is not None
        ]
    except dims.DimError as error:
        raise InputError("the inputs do not fit the program's signature", why=str(error)) from None
    if broken:
        raise InputError("the inputs' sizes contradict a constraint of the program", why="; ".join(broken))


def own_outputs(outputs: Sequence[object], inputs: Sequence[Array]) -> list[Array]:
    """The outputs as arrays that share memory with nothing else."""
    taken = {id(array) for array in inputs}
    result: list[Array] = []
    for output in outputs:
        if not isinstance(output, np.ndarray):
            raise InputError(f"an output of the program is a {type(output).__name__}, not a tensor")
        array = cast(Array, output)
        if not (array.flags.owndata and array.flags.writeable) or id(array) in taken:
            array = np.array(array)
        taken.add(id(array))
        result.append(array)
    return result


def _text(array: Array) -> str:
    try:
        return text_of(array.dtype)
    except KeyError:
        return array.dtype.name


def _shape(port: Port) -> str:
    return f"({', '.join(map(str, port.shape))})"
