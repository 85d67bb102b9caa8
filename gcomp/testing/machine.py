"""Tile kernels as machine code of this processor, beside the evaluator of tiles: the same bits, without a tolerance."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gcomp.dims import evaluate as value_of
from gcomp.dtypes import dtype_of, is_float, text_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.lowering.llvm.printing import print_kernel
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.executor import execute, memory_type
from gcomp.lowering.tiles.expanding import expand
from gcomp.lowering.tiles.schedules import Scheduled
from gcomp.runtime.cpu.memory import Pages
from gcomp.runtime.cpu.variants import Variant

Array = np.ndarray[Any, Any]

_FUNCTION: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_UNWRITTEN = 0x55
"""What bytes of results hold before a kernel runs."""


class Kernels:
    """The kernels of a launch as machine code. Their tile programs are expanded: the evaluator runs the same ones."""

    def __init__(self, scheduled: Scheduled, variant: Variant) -> None:
        self.scheduled = scheduled
        names = [f"kernel{n}" for n in range(len(scheduled.steps))]
        modules: list[Module] = []
        for name, step in zip(names, scheduled.steps, strict=True):
            modules.append(printed(step.kernel, name, variant))
        image = compile_image(modules, variant)
        self._pages = Pages(len(image.code), "the code of kernels")
        self._pages.fill(image.code)
        self._pages.make_code()
        self._functions = [_FUNCTION(self._pages.address + image.entries[name]) for name in names]

    def run(self, launch: LaunchOp, inputs: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
        """The results of the launch, as memory holds them."""
        memory: dict[tuple[str, int], Array] = {}
        for i, (value, array) in enumerate(zip(launch.operands, inputs, strict=True)):
            memory["input", i] = np.array(np.ascontiguousarray(array).view(dtype_of(memory_type(value))))
        for j, result in enumerate(launch.results):
            memory["output", j] = _unwritten([value_of(n, sizes) for n in shape_of(result)], memory_type(result))
        for k, scratch in enumerate(self.scheduled.scratch):
            kind = dtype_text(tile.tile((), scratch.element))
            memory["scratch", k] = _unwritten([value_of(scratch.count, sizes)], kind)
        for step, function in zip(self.scheduled.steps, self._functions, strict=True):
            grid = [value_of(size, sizes) for size in step.grid]
            values = [
                value_of(b.size, sizes) if b.kind == "size" else memory[b.kind, b.index].ctypes.data
                for b in step.bindings
            ]
            slots = (ctypes.c_int64 * (len(values) + len(grid)))(*values, *grid)
            function(ctypes.addressof(slots), 0, int(np.prod(grid)))
        return [memory["output", j] for j in range(len(launch.results))]


def printed(kernel: tile.KernelOp, name: str, variant: Variant) -> Module:
    """A kernel as LLVM IR. It is expanded."""
    expand(kernel)
    return Module(name, print_kernel(kernel, name, variant.bits), str(kernel))


def _unwritten(shape: Sequence[int], dtype: str) -> Array:
    found = np.empty(shape, dtype_of(dtype))
    found.reshape(-1).view(np.uint8)[:] = 0 if dtype == "i1" else _UNWRITTEN
    return found


def cross_check(launch: LaunchOp, kernels: Kernels, inputs: Sequence[Array], sizes: Mapping[str, int]) -> list[str]:
    """Where a launch's machine code computes other bits than its tile programs; any NaN is as good as another."""
    expected = execute(launch, kernels.scheduled, inputs, sizes)
    actual = kernels.run(launch, inputs, sizes)
    pairs = zip(
        expected, [a.view(e.dtype).reshape(e.shape) for e, a in zip(expected, actual, strict=True)], strict=True
    )
    return [f"result {j}: {why}" for j, (e, a) in enumerate(pairs) for why in differences(e, a)]


def differences(expected: Array, actual: Array) -> Iterator[str]:
    """The first places where arrays differ in bits."""
    wrong = _bits(expected) != _bits(actual)
    if is_float(text_of(expected.dtype)):
        wrong &= ~((expected != expected) & (actual != actual))
    for place in np.argwhere(wrong)[:3]:
        index = tuple(int(i) for i in place)
        yield f"at {list(index)} the evaluator has {expected[index]!r}, the machine {actual[index]!r}"


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
