"""Loads a model in a fresh process and runs it once: `python -m gcomp.measuring.once ENGINE SOURCE THREADS INPUTS.npz`.

Prints a line of JSON: seconds to import, to load and of the first call, and the bytes that the process took at most.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from gcomp.measuring.engines import ENGINES


def peak_memory() -> int:
    """The most bytes that this process had in memory: what it was forked from does not count, as in `getrusage`."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(name: str, source: str, threads: str, inputs: str) -> None:
    """Load, run and report."""
    with np.load(inputs) as file:
        arrays = {key: file[key] for key in file.files}
    engine = ENGINES[name](source, int(threads))
    started = time.perf_counter()
    engine.numpy(arrays)
    first = time.perf_counter() - started
    said = {"import": engine.import_seconds, "load": engine.load_seconds, "first": first, "memory": peak_memory()}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
