"""What the host computes while a program's code runs: the code calls back, and gives addresses to read and write at."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gcomp import dims
from gcomp.dtypes import DTYPES
from gcomp.errors import InternalError
from gcomp.runtime.cpu.plan import CpuPlan
from gcomp.runtime.hosting import Type, call_function
from gcomp.runtime.steps import HostCall, Located, walk

HOOK: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
"""What the code calls: with the number of a call, in the order of the plan's steps, and where the addresses lie. It
gives 0, or something else to have the code end."""

Array = np.ndarray[Any, Any]


class HostCalls:
    """The calls of the host in a plan."""

    def __init__(self, plan: CpuPlan) -> None:
        self._steps = [step for step in walk(plan.steps) if isinstance(step, HostCall)]
        self._symbols = plan.symbols

    def __bool__(self) -> bool:
        return bool(self._steps)

    def run(self, number: int, addresses: int, sizes: Sequence[int]) -> None:
        """Read what lies at the addresses that lie there, and write the results. Raises GcompError."""
        step, env = self._steps[number], dict(zip(self._symbols, sizes, strict=True))
        places = list((ctypes.c_uint64 * len(step.values)).from_address(addresses))
        inputs = [_read(at, _type(value, env)) for at, value in zip(places, step.inputs, strict=False)]
        types = [_type(value, env) for value in step.outputs]
        results = call_function(step.function, inputs, step.attributes, lambda: types)
        if (got := [(result.shape, result.dtype) for result in results]) != types:
            raise InternalError(f"The host step {step.function} gave {got}, expected {types}.")
        for at, result in zip(places[len(inputs) :], results, strict=True):
            ctypes.memmove(at, result.tobytes(), result.nbytes)


class Hook:
    """A function for the code of one call at a time. What it raises is kept: code cannot be left so."""

    def __init__(self, calls: HostCalls, sizes: Callable[[], Sequence[int]]) -> None:
        self._calls, self._sizes = calls, sizes
        self._error: BaseException | None = None
        self._function = HOOK(self._called)
        self.address: int = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _called(self, number: int, addresses: int) -> int:
        try:
            self._calls.run(number, addresses, self._sizes())
        except BaseException as error:
            self._error = error
            return 1
        return 0

    def check(self) -> None:
        """Raise what a call raised, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error


def _type(value: Located, env: Mapping[str, int]) -> Type:
    return tuple([dims.evaluate(dims.parse(size), env) for size in value.dims]), DTYPES[value.dtype]


def _read(address: int, type: Type) -> Array:
    shape, dtype = type
    data = ctypes.string_at(address, math.prod(shape) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape)


__all__ = ["Hook", "HostCalls"]
