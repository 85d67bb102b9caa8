"""Kernels run by Triton's own interpreter on NumPy arrays: a second opinion on what prints them. No torch is needed.

Triton decides when it is imported whether it interprets, so it does this in a process of its own. It is slow, some 100
microseconds for each op of each program: for a few small cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gcomp.errors import GcompError, UsageError
from gcomp.lowering.triton.aot import KernelError
from gcomp.lowering.triton.process import Died, Worker
from gcomp.lowering.triton.source import Argument, KernelSource
from gcomp.lowering.triton.targets import triton_version

Array = np.ndarray[Any, Any]

_MARGIN = 256
"""Bytes around each array that a kernel must leave as they are."""

_FILL = 0xA5

_BITS = {"i1": 8, "fp16": 16, "bf16": 16, "fp32": 32, "fp64": 64}
"""Bits that an element takes in memory, where its type's name does not end with them."""


class Interpreter:
    """A process in which Triton interprets kernels. Close it, or use it with `with`."""

    def __init__(self, seconds: float = 300.0) -> None:
        """`seconds` is the limit for one kernel. Raises UnsupportedError without Triton."""
        triton_version()
        self._worker = Worker("interpret", seconds)

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._worker.close()

    def run(self, source: KernelSource, values: Mapping[str, Array | int], grid: Sequence[int]) -> dict[str, Array]:
        """The arrays that the kernel writes to, by the names of its arguments, as new arrays.

        `values` has an array for each pointer, also for those only written to, which say what is there before, and an
        integer for each size. Raises KernelError when the kernel fails or writes outside of its arrays, UsageError for
        values that are not its arguments'.
        """
        if set(values) != {argument.name for argument in source.arguments}:
            raise UsageError(f"The kernel {source.name} takes {[argument.name for argument in source.arguments]}.")
        pointers = [argument for argument in source.arguments if argument.type.startswith("*")]
        arrays = [_check(argument, values[argument.name]) for argument in pointers]
        margin = bytes([_FILL]) * _MARGIN
        request = {
            "name": source.name,
            "text": source.text,
            "grid": list(grid),
            "arguments": [_argument(argument, pointers, values) for argument in source.arguments],
        }
        try:
            answer, blobs = self._worker.ask(request, [margin + array.tobytes() + margin for array in arrays])
        except Died as error:
            raise _failure(source, str(error)) from None
        if "error" in answer:
            raise _failure(source, f"{answer['error']}: {answer['text']}", answer["line"])
        results: dict[str, Array] = {}
        for argument, before, blob in zip(pointers, arrays, blobs, strict=True):
            data = blob[_MARGIN : len(blob) - _MARGIN]
            if margin + data + margin != blob:
                raise _failure(source, f"it wrote outside of {argument.name}")
            if argument.role != "in":
                results[argument.name] = np.frombuffer(bytearray(data), before.dtype).reshape(before.shape)
            elif data != before.tobytes():
                raise _failure(source, f"it wrote to {argument.name}, which it only reads")
        return results


def _check(argument: Argument, value: Array | int) -> Array:
    """The array of a pointer. UsageError where its elements are not of the size that the pointer's type has."""
    name = argument.type.removeprefix("*")
    # Of floats narrower than 16 bits the names say more than their width, which is 8.
    bits = _BITS.get(name) or (int(name[1:]) if name[1:].isdigit() else 8)
    if not isinstance(value, np.ndarray) or value.dtype.itemsize * 8 != bits:
        got = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise UsageError(f"The argument {argument.name} is a {argument.type}, and got {got}.")
    return np.ascontiguousarray(value)


def _argument(argument: Argument, pointers: Sequence[Argument], values: Mapping[str, Array | int]) -> dict[str, Any]:
    if argument in pointers:
        return {"type": argument.type, "buffer": pointers.index(argument), "offset": _MARGIN, "value": None}
    return {"type": argument.type, "buffer": None, "offset": 0, "value": int(values[argument.name])}


def _failure(source: KernelSource, why: str, line: int | None = None) -> GcompError:
    where = f"kernel {source.name}"
    lines = source.text.splitlines()
    if line is not None and 0 < line <= len(lines):
        where += f", line {line}: {lines[line - 1].strip()}"
    return KernelError("A kernel fails in Triton's interpreter.", where=where, why=why[:2000])
