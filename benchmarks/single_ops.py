"""Run time of single operators: the target `cpu` beside ONNX Runtime, for what is many times slower than it need be.

    python -m benchmarks.single_ops                       # all of benchmarks/models/single_ops.py, one thread
    python -m benchmarks.single_ops --only softmax,lstm --rounds 20

Results are compared with ONNX Runtime's before anything is timed. Times are of the processor, interleaved, with what
a call costs; ratios have 95 % bootstrap bounds, the greatest first. Exits 1 if an operator failed or disagreed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models.single_ops import CASES, Case
from benchmarks.report import Report, publish
from benchmarks.timing import Timing, geometric_mean, interleave, machine, pin, ratio

TOLERANCE = 1e-5
"""The largest difference from ONNX Runtime's result over the largest element of that."""


def measure(case: Case, rounds: int, threads: int) -> dict[str, Timing]:
    """Timings of an operator by competitor. Raises ValueError where the results differ."""
    import onnxruntime

    import gcomp

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    proto = case.model()
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    model = gcomp.compile(proto, target="cpu", threads=threads)
    ours, theirs = (np.asarray(f()[0], np.float64) for f in (lambda: model(**case.inputs), lambda: _run(session, case)))
    if ours.shape != theirs.shape:
        raise ValueError(f"its result has shape {ours.shape}, and ONNX Runtime's {theirs.shape}")
    error = np.abs(ours - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-30)
    if not error <= TOLERANCE:
        raise ValueError(f"differs from ONNX Runtime by {error:.1e}")
    return interleave({"cpu": lambda: model(**case.inputs), "ort": lambda: _run(session, case)}, rounds)


def _run(session: Any, case: Case) -> Any:
    return session.run(["y"], case.inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="directory for the results")
    options = parser.parse_args()
    pin(options.threads)
    timed: dict[str, dict[str, Timing]] = {}
    notes: list[str] = []
    for name in options.only.split(",") if options.only else CASES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            timed[name] = measure(CASES[name], options.rounds, options.threads)
        except Exception as error:
            notes.append(f"{name}: {type(error).__name__}: {error}")
    ratios = {name: ratio(found["cpu"].cpu, found["ort"].cpu) for name, found in timed.items()}
    rows = [
        [name, *[f"{1e3 * np.median(timed[name][k].cpu):.3f}" for k in ("cpu", "ort")], str(ratios[name])]
        for name in sorted(timed, key=lambda name: -ratios[name].median)
    ]
    mean = str(geometric_mean([(found["cpu"].cpu, found["ort"].cpu) for found in timed.values()])) if timed else "-"
    title = f"Single operators, processor time, {options.threads} thread(s)"
    columns = ["operator", "gcomp cpu ms", "ONNX Runtime ms", "cpu / ort"]
    data = {"machine": machine(), "timings": {n: {k: t.cpu.tolist() for k, t in f.items()} for n, f in timed.items()}}
    publish("single_ops", [Report(title, columns, [*rows, ["geometric mean", "", "", mean]], notes)], data, options.out)
    sys.exit(bool(notes))


if __name__ == "__main__":
    main()
