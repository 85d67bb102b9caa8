"""Kernels that TorchInductor makes of the benchmark models, and the bytes that they move, by its own scheduler.

    python -m benchmarks.inductor_kernels [--workloads all]

The scheduler is asked after it fused, and nothing is compiled: nodes that do nothing do not count, library calls
(products, convolutions, attention) count as kernels, as ours do. It runs for the CPU here, where no GPU is at hand: its
fusion rules are the same but for templates, which neither takes by default. Prints a JSON line for each model.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks.workloads import Workload, select


class _Counted(Exception):
    """What ends the compilation once the kernels are known."""


def kernels(workload: Workload) -> dict[str, Any]:
    """The kernels of one model: their number by kind of node, and the bytes that they read and write."""
    import torch
    from torch._inductor import scheduler

    found: list[tuple[Counter[str], int]] = []

    def count(self: Any) -> None:
        nodes = [n for n in self.nodes if not isinstance(n, scheduler.NopKernelSchedulerNode)]
        kinds = Counter("library" if isinstance(n, scheduler.ExternKernelSchedulerNode) else "generated" for n in nodes)
        found.append((kinds, sum(int(n.get_read_write_buffers_sizes()) for n in nodes)))
        raise _Counted

    scheduler.Scheduler.codegen = count
    torch._dynamo.config.allow_rnn = True
    module = workload.torch_module().eval()
    inputs = [torch.from_numpy(np.array(x)) for x in workload.inputs(np.random.default_rng(0)).values()]
    try:
        with torch.no_grad():
            torch.compile(module, backend="inductor", fullgraph=True)(*inputs)
    except Exception as error:
        if not found:
            return {"model": workload.name, "error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    kinds, moved = found[0]
    return {"model": workload.name, "kernels": kinds.total(), **kinds, "bytes": moved}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all", help="comma-separated names, or all")
    options = parser.parse_args()
    failed = False
    for workload in select(options.workloads):
        print(f"{workload.name} ...", file=sys.stderr, flush=True)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            result = pool.submit(kernels, workload).result()
        failed |= "error" in result
        print(json.dumps(result), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
