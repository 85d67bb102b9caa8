"""What a first call takes: `torch.compile` by gcomp and TorchInductor, and `gcomp.jit` beside `jax.jit`.

    python -m benchmarks.first_call [--workloads mlp,mobilenetv2] [--threads 2]

Each compiles in a process of its own, without caches on disk; libraries are loaded, modules made and parameters placed
before. It is the time until the results are there: capturing, importing, passes, lowering, and the backend's compiler.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.report import Report, publish
from benchmarks.workloads import Workload, select
from gcomp.measuring.timing import machine, pin

WORKLOADS = "mlp,softmax_layernorm,mobilenetv2,bert,gpt2_prefill,vit,llama"


def of_torch(workload: Workload, backend: str) -> Callable[[], object]:
    """A compiled module that was not called yet."""
    import torch

    module = workload.torch_module().eval()
    inputs = [torch.from_numpy(np.array(x)) for x in workload.inputs(np.random.default_rng(0)).values()]
    # Parts of torch's own compiler are loaded by the first use; so are gcomp's.
    torch.compile(lambda x: x * 2, backend=backend)(torch.ones(3))
    compiled = torch.compile(module, backend=backend, fullgraph=True)

    def call() -> object:
        with torch.no_grad():
            return compiled(*inputs)

    return call


def of_jax(workload: Workload, backend: str) -> Callable[[], object]:
    """A compiled function that was not called yet."""
    import jax

    import gcomp

    function, params = workload.jax_fn()
    inputs = {name: jax.numpy.asarray(x) for name, x in workload.inputs(np.random.default_rng(0)).items()}
    jit = {"gcomp": gcomp.jit, "jax": jax.jit}[backend]
    jax.block_until_ready(jit(lambda x: x * 2)(jax.numpy.ones(3)))
    params = jax.tree.map(jax.numpy.asarray, params)
    compiled = jit(function)
    return lambda: jax.block_until_ready(compiled(params, **inputs))


DOORS: dict[str, tuple[Callable[[Workload, str], Callable[[], object]], str]] = {
    "torch.compile, gcomp": (of_torch, "gcomp"),
    "torch.compile, TorchInductor": (of_torch, "inductor"),
    "gcomp.jit": (of_jax, "gcomp"),
    "jax.jit": (of_jax, "jax"),
}


def first_call(workload: Workload, door: str, threads: int) -> float:
    """Seconds of the first call, in this process."""
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    os.environ["GCOMP_CACHE_DIR"] = "off"
    pin(threads)
    make, backend = DOORS[door]
    call = make(workload, backend)
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def alone(workload: Workload, door: str, threads: int) -> float | None:
    """Seconds of the first call, in a process of its own; None where it fails."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(first_call, workload, door, threads).result()
        except Exception as error:
            sys.stderr.write(f"{workload.name}, {door}: {type(error).__name__}: {str(error).splitlines()[0]}\n")
            return None


def ratio(one: float | None, other: float | None) -> str:
    """How many times as long one takes."""
    return "-" if one is None or other is None else f"{one / other:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default=WORKLOADS, help="comma-separated names, or all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args(arguments)
    found: dict[str, dict[str, float | None]] = {}
    for workload in select(options.workloads):
        sys.stderr.write(f"{workload.name} ...\n")
        found[workload.name] = {door: alone(workload, door, options.threads) for door in DOORS}
    rows: list[list[str]] = []
    for name, times in found.items():
        ours, inductor, jitted, jax = (times[door] for door in DOORS)
        seconds = ["-" if t is None else f"{t:.2f}" for t in times.values()]
        rows.append([name, *seconds[:2], ratio(ours, inductor), *seconds[2:], ratio(jitted, jax)])
    columns = [
        "model",
        *(f"{door}, s" for door in (*DOORS,)[:2]),
        "ratio",
        *(f"{d}, s" for d in (*DOORS,)[2:]),
        "ratio",
    ]
    report = Report(f"First calls, {options.threads} threads", columns, rows)
    publish("first_call", [report], {"machine": machine(), "seconds": found}, options.out)
    return int(any(t is None for times in found.values() for t in times.values()))


if __name__ == "__main__":
    sys.exit(main())
