"""Kernels timed on a GPU, each by itself: the median of several runs, with nothing of theirs in the cache.

Before each run a fill of memory, larger than any GPU's second-level cache, pushes out what the run before left there.
It also takes the GPU so long that all launches are queued before the first begins: what lies between the events is the
GPU's time, not the host's. Events resolve about half a microsecond.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from statistics import median
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from gcomp.dims import Size
from gcomp.dims import evaluate as value_of
from gcomp.dtypes import dtype_of, is_float, text_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.executor import memory_type
from gcomp.lowering.tiles.schedules.kernel import Binding, Scheduled
from gcomp.lowering.triton.aot import Compiled, size_of
from gcomp.lowering.triton.source import Argument
from gcomp.runtime.cuda.driver import Address, Driver, Value

Array = np.ndarray[Any, Any]

FLUSHED = 256 << 20
"""Bytes that are filled before each run: the largest cache is that of sm_100, of 126 MB."""

WARMING, RUNS = 3, 20
"""Runs before those that count, and those that do."""

_ALIGNMENT = 256
_DRAWN = 1 << 20
"""Numbers of an input that are drawn; longer ones repeat them."""


@dataclass(frozen=True)
class Memory:
    """A launch's inputs and outputs on the GPU, and the sizes of its symbols."""

    inputs: Sequence[Address]
    outputs: Sequence[Address]
    sizes: Mapping[str, int]


class Timer:
    """Times kernels on a GPU. Close it, or use it with `with`: it holds memory."""

    def __init__(self, gpu: Driver) -> None:
        gpu.enter()
        self._gpu = gpu
        self._stream = gpu.stream()
        self._flushed = gpu.allocate(FLUSHED)

    def __enter__(self) -> Timer:
        return self

    def __exit__(self, *_: object) -> None:
        self._gpu.release(self._flushed)
        self._gpu.close(self._stream)

    @contextmanager
    def memory_of(self, launch: LaunchOp, sizes: Mapping[str, int]) -> Generator[Memory]:
        """Memory for a launch at some sizes, inputs filled: floats are normal, other numbers small, and both random."""
        random = np.random.default_rng(0)
        arrays = [_draw(random, value, sizes) for value in launch.operands]
        outputs = [prod(_shape(v, sizes)) * dtype_of(memory_type(v)).itemsize for v in launch.results]
        with self._allocated([*(array.nbytes for array in arrays), *outputs]) as places:
            for place, array in zip(places, arrays, strict=False):
                if array.nbytes:
                    self._gpu.upload(place, array.ctypes.data, array.nbytes, self._stream)
            self._gpu.wait(self._stream)
            yield Memory(places[: len(arrays)], places[len(arrays) :], sizes)

    def seconds(self, memory: Memory, scheduled: Scheduled, kernels: Sequence[Compiled]) -> list[float]:
        """The median time of each GPU kernel of a launch, run after each other."""
        gpu = self._gpu
        spaces = [_count(s.count, memory.sizes) * _width(s.element) for s in scheduled.scratch]
        grids = [tuple([value_of(size, memory.sizes) for size in step.grid]) for step in scheduled.steps]
        own = [k.scratch * prod(grid) * k.ctas for k, grid in zip(kernels, grids, strict=True)]
        modules = [gpu.load(k.binary, f"{k.source.name}.{k.target}.cubin") for k in kernels]
        events = [gpu.event() for _ in range(len(kernels) + 1)]
        try:
            functions = [
                gpu.function(module, k.source.name, k.shared, k.ctas)
                for module, k in zip(modules, kernels, strict=True)
            ]
            with self._allocated([*spaces, max(own, default=0)]) as places:
                scratch = places[-1]

                def launch(n: int) -> None:
                    kernel, grid = kernels[n], grids[n]
                    if not all(grid):
                        return
                    pairs = zip(kernel.source.arguments, scheduled.steps[n].bindings, strict=True)
                    arguments = [_argument(a, b, memory, places) for a, b in pairs]
                    arguments += [(scratch if own[n] else 0, 8), (0, 8)]
                    x, y, z = (*grid, 1, 1)[:3]
                    gpu.launch(
                        functions[n], (x, y, z), 32 * kernel.warps, kernel.shared, kernel.ctas, arguments, self._stream
                    )

                runs = [self._run(len(kernels), events, launch) for _ in range(WARMING + RUNS)]
            return [median(times) / 1e3 for times in zip(*runs[WARMING:], strict=True)]
        finally:
            for event in events:
                gpu.forget(event)
            for module in modules:
                gpu.unload(module)

    def _run(self, count: int, events: Sequence[int], launch: Any) -> list[float]:
        """The milliseconds of each kernel in one run."""
        gpu, stream = self._gpu, self._stream
        gpu.fill(self._flushed, 0, FLUSHED, stream)
        gpu.mark(events[0], stream)
        for n in range(count):
            launch(n)
            gpu.mark(events[n + 1], stream)
        return [gpu.milliseconds(first, last) for first, last in pairwise(events)]

    @contextmanager
    def _allocated(self, sizes: Sequence[int]) -> Generator[list[Address]]:
        """One allocation, cut into pieces of these sizes."""
        offsets = [0]
        for size in sizes:
            offsets.append(offsets[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
        base = self._gpu.allocate(offsets[-1])
        try:
            yield [base + offset for offset in offsets[:-1]]
        finally:
            self._gpu.release(base)


def _argument(argument: Argument, binding: Binding, memory: Memory, scratch: Sequence[Address]) -> Value:
    if binding.kind == "size":
        return value_of(binding.size, memory.sizes), size_of(argument)
    places = {"input": memory.inputs, "output": memory.outputs, "scratch": scratch}[binding.kind]
    return places[binding.index], 8


def _draw(random: np.random.Generator, value: SSAValue, sizes: Mapping[str, int]) -> Array:
    dtype = dtype_of(memory_type(value))
    count = prod(shape := _shape(value, sizes))
    some = min(count, _DRAWN)
    if is_float(text_of(dtype)):
        numbers = random.standard_normal(some).astype(dtype)
    else:
        numbers = random.integers(0, 2 if dtype_text(value.type) == "i1" else 8, some).astype(dtype)
    return np.ascontiguousarray(np.resize(numbers, shape))


def _shape(value: SSAValue, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([value_of(n, sizes) for n in shape_of(value)])


def _count(size: Size, sizes: Mapping[str, int]) -> int:
    return value_of(size, sizes)


def _width(element: Any) -> int:
    return dtype_of(dtype_text(tile.tile((), element))).itemsize


__all__ = ["Memory", "Timer"]
