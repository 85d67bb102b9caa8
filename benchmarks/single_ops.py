"""Run time of single operators: the target `cpu` beside ONNX Runtime, for what is many times slower than it need be.

    python -m benchmarks.single_ops                       # all of benchmarks/models/single_ops.py, one thread
    python -m benchmarks.single_ops --only softmax,lstm --rounds 20

Results are compared with ONNX Runtime's before anything is timed. Times are of the processor, interleaved, with what
a call costs; ratios have 95 % bootstrap bounds, the greatest first. Exits 1 if an operator failed or disagreed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.models.single_ops import CASES, Case
from benchmarks.sweep import sweep
from gcomp.measuring.timing import Timing, geometric_mean, interleave, ratio

TOLERANCE = 1e-5
"""The largest difference from ONNX Runtime's result over the largest element of that."""


def measure(name: str, rounds: int, threads: int) -> dict[str, Timing]:
    """Timings of an operator by competitor. Raises ValueError where the results differ."""
    import onnxruntime

    import gcomp

    case = CASES[name]
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
    found = sweep(__doc__, lambda: CASES, measure, rounds=5)
    timed = found.timed
    ratios = {name: ratio(by["cpu"].cpu, by["ort"].cpu) for name, by in timed.items()}
    rows = [
        [name, *[f"{1e3 * np.median(timed[name][k].cpu):.3f}" for k in ("cpu", "ort")], str(ratios[name])]
        for name in sorted(timed, key=lambda name: -ratios[name].median)
    ]
    mean = str(geometric_mean([(by["cpu"].cpu, by["ort"].cpu) for by in timed.values()])) if timed else "-"
    columns = ["operator", "gcomp cpu ms", "ONNX Runtime ms", "cpu / ort"]
    found.publish("single_ops", "Single operators", columns, [*rows, ["geometric mean", "", "", mean]])


if __name__ == "__main__":
    main()
