"""What is timed: one class per way of running a workload, all with NumPy arrays in and NumPy arrays out.

That is what a user of each library writes. Inputs start at 64-byte boundaries, so none of them copies a large
input, and on the CPU a JAX result becomes a NumPy array without a copy.
Each library is imported when its competitor is made, never by importing this module.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np

from benchmarks.workloads import Arrays, Variant, Workload
from gcomp.measuring import engines


class Competitor(Protocol):
    """A compiled workload, ready to be called many times."""

    label: str
    compile_seconds: float

    def __call__(self, inputs: Arrays) -> Any:
        """Run once; returns only when the result is there."""
        ...

    def numpy(self, inputs: Arrays) -> list[np.ndarray]:
        """Run once and return the outputs in declared order."""
        ...


class JaxJit:
    """The hand-written baseline under plain `jax.jit`, weights on the device and passed as arguments."""

    label = "jax.jit"

    def __init__(self, workload: Workload, variant: Variant = "dynamo", threads: int = 2):
        import jax

        function, params = workload.jax_fn()
        self.params = jax.device_put(params)
        self.jitted = jax.jit(function)
        example = workload.inputs(np.random.default_rng(0))
        first, second = self.seconds(example), self.seconds(example)
        self.compile_seconds = first - second  # the first call traces, compiles and runs

    def seconds(self, inputs: Arrays) -> float:
        start = time.perf_counter()
        self.numpy(inputs)
        return time.perf_counter() - start

    def __call__(self, inputs: Arrays) -> list[np.ndarray]:
        return self.numpy(inputs)

    def numpy(self, inputs: Arrays) -> list[np.ndarray]:
        return [np.asarray(out) for out in self.jitted(self.params, **inputs)]


class OnnxRuntime(engines.OnnxRuntime):
    """ONNX Runtime on the exported model."""

    def __init__(self, workload: Workload, variant: Variant = "dynamo", threads: int = 2):
        super().__init__(str(workload.onnx_path(variant)), threads)
        self.compile_seconds = self.load_seconds


class Gcomp:
    """gcomp on the exported model, through XLA."""

    label = "gcomp"
    target = "xla:cpu"

    def __init__(self, workload: Workload, variant: Variant = "dynamo", threads: int = 2):
        import gcomp

        start = time.perf_counter()
        sizes = workload.sizes if variant == "dynamic" else {}
        self.model = gcomp.compile(
            str(workload.onnx_path(variant)), target=self.target, threads=self.threads(threads)
        ).prepare(**sizes)
        self.compile_seconds = time.perf_counter() - start

    @staticmethod
    def threads(count: int) -> int | None:
        """Threads that the model is given; XLA takes the process's cores."""
        return None

    def __call__(self, inputs: Arrays) -> tuple[np.ndarray, ...]:
        return self.model(**inputs)

    def numpy(self, inputs: Arrays) -> list[np.ndarray]:
        return [np.asarray(out) for out in self.model(**inputs)]


class GcompCpu(Gcomp):
    """gcomp on the exported model, as machine code of its own."""

    label = "gcomp cpu"
    target = "cpu"

    @staticmethod
    def threads(count: int) -> int | None:
        return count


class OpenVino(engines.OpenVino):
    """OpenVINO on the exported model."""

    def __init__(self, workload: Workload, variant: Variant = "dynamo", threads: int = 2):
        super().__init__(str(workload.onnx_path(variant)), threads)
        self.compile_seconds = self.load_seconds


COMPETITORS: dict[str, type[Competitor]] = {
    "gcomp": Gcomp, "cpu": GcompCpu, "jax": JaxJit, "ort": OnnxRuntime, "ov": OpenVino,
}  # fmt: skip
