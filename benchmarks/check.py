"""Check that every JAX baseline computes what ONNX Runtime computes from the exported model.

    python -m benchmarks.check [--workloads all] [--variants dynamo]

The error of an output is its largest absolute difference over its largest magnitude. Exits 1 if one is too large.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.competitors import JaxJit, OnnxRuntime
from benchmarks.workloads import Variant, Workload, select


def errors(workload: Workload, variant: Variant) -> list[float]:
    """The error of each output of the JAX baseline against ONNX Runtime on the exported model."""
    inputs = workload.inputs(np.random.default_rng(1))
    ours = JaxJit(workload).numpy(inputs)
    theirs = OnnxRuntime(workload, variant=variant, threads=2).numpy(inputs)
    assert len(ours) == len(theirs) == len(workload.outputs)
    measured = []
    for name, a, b in zip(workload.outputs, ours, theirs, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            sys.exit(f"{workload.name}: {name} is {a.dtype}{list(a.shape)} in JAX, {b.dtype}{list(b.shape)} in ONNX")
        measured.append(float(np.abs(a - b).max() / np.abs(b).max()))
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all")
    parser.add_argument("--variants", default="dynamo")
    options = parser.parse_args()
    failed = False
    for workload in select(options.workloads):
        for variant in options.variants.split(","):
            if variant not in workload.variants:
                continue
            worst = max(errors(workload, variant))
            good = worst <= workload.tolerance
            failed |= not good
            print(f"{'ok  ' if good else 'FAIL'} {workload.name:18} {variant:10} error {worst:.1e}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
