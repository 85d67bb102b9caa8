"""What this machine does at best, measured: multiply-adds on floats, and bytes that are copied, in a second.

    with Peaks(variant, threads=2) as peaks:
        peaks.flops(), peaks.bandwidth()

Both are of all threads together. Clocks change with load and heat: what is put beside them is measured close by.
"""

from __future__ import annotations

import ctypes
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gcomp.lowering.llvm.codegen import Module, compile_image
from gcomp.lowering.llvm.dots import SUMS
from gcomp.runtime.cpu.mapping import Image
from gcomp.runtime.cpu.plan import Code
from gcomp.runtime.cpu.variants import Variant

TURNS = 1 << 18
"""Turns of the loop of multiply-adds in one measurement: some milliseconds."""
COPIED = 64 << 20
"""Bytes that each thread copies: more than its share of any cache."""
ROUNDS = 7
"""Measurements, of which the best counts."""


class Peaks:
    """Measures the peaks of a kind of processor that this machine is, with so many threads."""

    def __init__(self, variant: Variant, threads: int) -> None:
        self._threads, self._lanes = threads, variant.bits // 32
        found = compile_image([Module("peak", multiply_adds(self._lanes))], variant)
        at = found.entries["peak"]
        code = Code("peak", hashlib.sha256(found.code).hexdigest(), at, at, at, at)
        self._image = Image(code, found.code)
        self._run: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(self._image.at(at))
        self._pool = ThreadPoolExecutor(threads)

    def __enter__(self) -> Peaks:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def flops(self) -> float:
        """Flops a second: two for each lane of a multiply-add."""
        results = [np.zeros(16 * SUMS[self._lanes], np.float32) for _ in range(self._threads)]
        seconds = self._best([lambda x=x: self._run(x.ctypes.data, 0, TURNS) for x in results])
        return 2 * self._threads * TURNS * SUMS[self._lanes] * self._lanes / seconds

    def bandwidth(self) -> float:
        """Bytes a second that are read and written, of arrays that no cache keeps."""
        pairs = [(np.ones(COPIED, np.uint8), np.zeros(COPIED, np.uint8)) for _ in range(self._threads)]
        seconds = self._best([lambda x=x, y=y: np.copyto(y, x) for x, y in pairs])
        return 2 * self._threads * COPIED / seconds

    def _best(self, actions: list[Callable[[], object]]) -> float:
        """The least seconds in which all threads have done one action each."""
        times: list[float] = []
        for _ in range(1 + ROUNDS):
            began = time.perf_counter()
            for done in [self._pool.submit(action) for action in actions]:
                done.result()
            times.append(time.perf_counter() - began)
        return min(times[1:])


def multiply_adds(lanes: int) -> str:
    """LLVM IR of a function that adds to as many vectors as products keep sums in, so many times."""
    v, count = f"<{lanes} x float>", SUMS[lanes]
    fma = f"@llvm.fma.v{lanes}f32"
    start = [f"  %s{n} = phi {v} [ zeroinitializer, %entry ], [ %t{n}, %loop ]" for n in range(count)]
    body = [f"  %t{n} = call {v} {fma}({v} %x, {v} splat (float 0.5), {v} %s{n})" for n in range(count)]
    end = [
        f"  %p{n} = getelementptr {v}, ptr %args, i64 {n}\n  store {v} %t{n}, ptr %p{n}, align 4" for n in range(count)
    ]
    return "\n".join([
        f"declare {v} {fma}({v}, {v}, {v})",
        "define void @peak(ptr %args, i64 %begin, i64 %end) #0 {", "entry:",
        f"  %x = load {v}, ptr %args, align 4", "  br label %loop", "loop:",
        "  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]", *start, *body, "  %next = add i64 %i, 1",
        "  %more = icmp slt i64 %next, %end", "  br i1 %more, label %loop, label %done", "done:", *end, "  ret void",
        "}", 'attributes #0 = { nounwind "no-builtins" "no-stack-arg-probe" }', "",
    ])  # fmt: skip


__all__ = ["Peaks", "multiply_adds"]
