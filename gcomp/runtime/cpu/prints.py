"""Lines that a program prints while its code runs: the code calls back, and what lies at its addresses is shown."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gcomp import dims
from gcomp.dtypes import DTYPES
from gcomp.runtime.cpu.plan import CpuPlan
from gcomp.runtime.steps import Print, Printed, walk

HOOK: Any = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)
"""What the code calls: with the number of a print, in the order of the plan's steps, and where the addresses lie."""


class Prints:
    """The prints of a plan."""

    def __init__(self, plan: CpuPlan) -> None:
        self._steps = [step for step in walk(plan.steps) if isinstance(step, Print)]
        self._symbols = plan.symbols

    def __bool__(self) -> bool:
        return bool(self._steps)

    def write(self, number: int, addresses: int, sizes: Sequence[int]) -> None:
        """Write a line about values at the addresses that lie there."""
        from gcomp.reference.numpy.printing import render, write

        step, env = self._steps[number], dict(zip(self._symbols, sizes, strict=True))
        places = (ctypes.c_uint64 * len(step.values)).from_address(addresses)
        write(render(step.format, [_read(at, value, env) for at, value in zip(places, step.values, strict=True)]))


class Hook:
    """A function for the code of one call at a time. What it raises is kept: code cannot be left so."""

    def __init__(self, prints: Prints, sizes: Callable[[], Sequence[int]]) -> None:
        self._prints, self._sizes = prints, sizes
        self._error: BaseException | None = None
        self._function = HOOK(self._called)
        self.address: int = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _called(self, number: int, addresses: int) -> None:
        if self._error is not None:
            return
        try:
            self._prints.write(number, addresses, self._sizes())
        except BaseException as error:
            self._error = error

    def check(self) -> None:
        """Raise what a line's reader raised, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error


def _read(address: int, value: Printed, env: dict[str, int]) -> np.ndarray[Any, Any]:
    shape, dtype = [dims.evaluate(dims.parse(size), env) for size in value.dims], DTYPES[value.dtype]
    data = ctypes.string_at(address, math.prod(shape) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape)


__all__ = ["Hook", "Prints"]
