"""gcomp's and ONNX Runtime's largest error against float64, for exported models.

    python -m benchmarks.accuracy [--workloads resnet50,mobilenetv2,bert,gpt2_prefill,vit] [--variants all] [--out DIR]

The float64 reference is the PyTorch module itself in double precision. The error of a model is the largest absolute
difference of any output over the largest magnitude of that output. Exits 1 when gcomp's error is over four times ONNX
Runtime's and over the workload's tolerance.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import gcomp
from benchmarks.competitors import OnnxRuntime
from benchmarks.export import module_and_weights
from benchmarks.workloads import VARIANTS, Arrays, Variant, Workload, cache_directory, select

FIVE = "resnet50,mobilenetv2,bert,gpt2_prefill,vit"


def reference(workload: Workload, inputs: Arrays) -> list[np.ndarray]:
    """The outputs of the PyTorch module in float64, flattened in declared order."""
    module = module_and_weights(workload).double().eval()
    args = [torch.from_numpy(x.astype(np.float64) if x.dtype == np.float32 else x) for x in inputs.values()]
    with torch.no_grad():
        out = module(*args)
    return [t.numpy() for t in torch.utils._pytree.tree_leaves(out)]


def error(actual: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest difference of any output, over the largest magnitude of that output."""
    pairs = zip(actual, expected, strict=True)
    return max(float(np.abs(a.astype(np.float64) - e).max() / np.abs(e).max()) for a, e in pairs)


def measure(workload: Workload, variant: Variant, inputs: Arrays, expected: list[np.ndarray]) -> tuple[float, float]:
    """gcomp's error and ONNX Runtime's."""
    model = gcomp.compile(workload.onnx_path(variant))
    ours = [np.asarray(x) for x in model(**inputs)]
    theirs = OnnxRuntime(workload, variant=variant, threads=2).numpy(inputs)
    return error(ours, expected), error(theirs, expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default=FIVE)
    parser.add_argument("--variants", default="all")
    parser.add_argument("--out", type=Path, default=cache_directory() / "results")
    options = parser.parse_args()
    variants = VARIANTS if options.variants == "all" else options.variants.split(",")
    table = Table("model", "export", "gcomp error", "ONNX Runtime error", title="Largest error against float64")
    lines = ["| model | export | gcomp error | ONNX Runtime error |", "|---|---|---|---|"]
    failed = False
    for workload in select(options.workloads):
        inputs = workload.inputs(np.random.default_rng(1))
        expected = reference(workload, inputs)
        for variant in (v for v in variants if v in workload.variants):
            ours, theirs = measure(workload, variant, inputs, expected)
            failed |= ours > max(4 * theirs, workload.tolerance)
            row = (workload.name, variant, f"{ours:.1e}", f"{theirs:.1e}")
            table.add_row(*row)
            lines.append(f"| {' | '.join(row)} |")
            print(*row, flush=True)
    Console().print(table)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "accuracy.md").write_text("\n".join(lines) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
