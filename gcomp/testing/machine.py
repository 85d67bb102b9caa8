"""Tile kernels as machine code, beside the evaluator of tiles: the same bits, without a tolerance.

Where code runs is a function (`Place`): in this process (`run_here`), or on another machine that is emulated
(`gcomp.testing.emulated`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gcomp.dims import evaluate as value_of
from gcomp.dtypes import dtype_of, is_float, text_of
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.types import dtype_text, shape_of
from gcomp.lowering.llvm.codegen import Module, compile_image, emit_object
from gcomp.lowering.llvm.image import Image, link
from gcomp.lowering.llvm.printing import print_kernel
from gcomp.lowering.tiles import tile
from gcomp.lowering.tiles.executor import memory_type
from gcomp.lowering.tiles.expanding import expand
from gcomp.lowering.tiles.schedules import Scheduled
from gcomp.runtime.cpu.memory import Pages
from gcomp.runtime.cpu.variants import Variant

Array = np.ndarray[Any, Any]

_UNWRITTEN = 0x55
"""What bytes of results hold before a kernel runs."""


@dataclass(frozen=True)
class Call:
    """A call of a kernel: where its function begins in the code, its arguments (the number of a piece of memory, or a
    value), and the sizes of its grid, whose programs it is to run."""

    entry: int
    arguments: Sequence[tuple[bool, int]]
    grid: Sequence[int]


Place = Callable[[bytes, Sequence[Array], Sequence[Call]], None]
"""Maps code, and makes calls of it on memory, which is changed in place."""


def run_here(code: bytes, memory: Sequence[Array], calls: Sequence[Call]) -> None:
    """Run code in this process."""
    pages = Pages(len(code), "the code of kernels")
    pages.fill(code)
    pages.make_code()
    for call in calls:
        slots = [memory[value].ctypes.data if is_memory else value for is_memory, value in call.arguments]
        args = (ctypes.c_int64 * (len(slots) + len(call.grid)))(*slots, *call.grid)
        _FUNCTION(pages.address + call.entry)(ctypes.addressof(args), 0, int(np.prod(call.grid)))


_FUNCTION: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Kernels:
    """The kernels of a launch as machine code. Their tile programs are expanded: the evaluator runs the same ones."""

    def __init__(self, scheduled: Scheduled, bits: int, words: str = "") -> None:
        """`bits` is the width of vectors that the kernels are printed for, `words` how bytes are multiplied."""
        self.scheduled = scheduled
        names = [f"kernel{n}" for n in range(len(scheduled.steps))]
        for step in scheduled.steps:
            expand(step.kernel)
        self.modules = [
            Module(name, print_kernel(step.kernel, name, bits, words))
            for name, step in zip(names, scheduled.steps, strict=True)
        ]
        self._image: Image | None = None

    def compile(self, variant: Variant) -> None:
        """Make the code for a kind of processor."""
        objects = [emit_object(module, variant) for module in self.modules]
        self._image = link(objects, _base(variant)) if objects else _base(variant)

    def run(
        self, launch: LaunchOp, inputs: Sequence[Array], sizes: Mapping[str, int], place: Place = run_here
    ) -> list[Array]:
        """The results of the launch, as memory holds them."""
        assert self._image is not None
        memory: list[Array] = []
        numbers: dict[tuple[str, int], int] = {}

        def hold(kind: str, index: int, array: Array) -> None:
            numbers[kind, index] = len(memory)
            memory.append(array)

        for i, (value, array) in enumerate(zip(launch.operands, inputs, strict=True)):
            hold("input", i, np.array(np.ascontiguousarray(array).view(dtype_of(memory_type(value)))))
        for j, result in enumerate(launch.results):
            hold("output", j, _unwritten([value_of(n, sizes) for n in shape_of(result)], memory_type(result)))
        for k, scratch in enumerate(self.scheduled.scratch):
            kind = dtype_text(tile.tile((), scratch.element))
            hold("scratch", k, _unwritten([value_of(scratch.count, sizes)], kind))
        calls: list[Call] = []
        for module, step in zip(self.modules, self.scheduled.steps, strict=True):
            arguments = [
                (False, value_of(b.size, sizes)) if b.kind == "size" else (True, numbers[b.kind, b.index])
                for b in step.bindings
            ]
            calls.append(Call(self._image.entries[module.name], arguments, [value_of(n, sizes) for n in step.grid]))
        place(self._image.code, memory, calls)
        return [memory[numbers["output", j]] for j in range(len(launch.results))]


@cache
def _base(variant: Variant) -> Image:
    """What all images have: the functions that move memory, and the pool."""
    return compile_image([], variant)


def _unwritten(shape: Sequence[int], dtype: str) -> Array:
    found = np.empty(shape, dtype_of(dtype))
    found.reshape(-1).view(np.uint8)[:] = 0 if dtype == "i1" else _UNWRITTEN
    return found


def all_differences(expected: Sequence[Array], actual: Sequence[Array]) -> list[str]:
    """Where results of the evaluator differ in bits from what memory holds; any NaN is as good as another."""
    pairs = [(_parts(e), _parts(a.view(e.dtype).reshape(e.shape))) for e, a in zip(expected, actual, strict=True)]
    return [f"result {j}: {why}" for j, (e, a) in enumerate(pairs) for why in differences(e, a)]


def differences(expected: Array, actual: Array) -> Iterator[str]:
    """The first places where arrays differ in bits."""
    wrong = _bits(expected) != _bits(actual)
    if not wrong.any():
        return
    if is_float(text_of(expected.dtype)):
        wrong &= ~((expected != expected) & (actual != actual))
    for place in np.argwhere(wrong)[:3]:
        index = tuple(int(i) for i in place)
        yield f"at {list(index)} the evaluator has {expected[index]!r}, the machine {actual[index]!r}"


def _parts(array: Array) -> Array:
    """Complex numbers as the pairs of floats that they are, in one dimension more."""
    if not np.iscomplexobj(array):
        return array
    return np.ascontiguousarray(array)[..., None].view(array.real.dtype)


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


__all__ = ["Call", "Kernels", "Place", "all_differences", "differences", "run_here"]
