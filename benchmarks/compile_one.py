"""Compile one ONNX file in this process and print, as JSON, seconds by phase and peak memory.

    python -m benchmarks.compile_one model.onnx [--target cpu]
    python -m benchmarks.compile_one --baseline

`compile_time` runs this. It imports nothing but the standard library before gcomp, so that what gcomp brings in
counts as gcomp's. Beside the time by the clock it prints that of its processors for each phase (`processor`),
and that of the processes which LLVM runs in (`children`); for `cpu`, with libraries loaded before. The baseline is what
a process holds that has loaded gcomp and all that compiling needs, XLA's client included, and has compiled nothing.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module


@contextmanager
def peak_memory() -> Iterator[dict[str, float]]:
    """Megabytes resident until the body ends: the peak of everything, and of memory not backed by a file.

    Pages of a mapped weight file count as resident too, although the system can drop them at will; the anonymous
    peak leaves them out.
    """
    peak = {"rss": 0.0, "anonymous": 0.0}
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            sample(peak)
            done.wait(0.005)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        sample(peak)


def sample(peak: dict[str, float]) -> None:
    """Raise `peak` to what /proc says of this process now (Linux only)."""
    with open("/proc/self/status") as lines:
        status = dict(line.split(":", 1) for line in lines)
    # The system itself keeps the peak of everything; that of anonymous memory is only sampled.
    for key, name in (("rss", "VmHWM"), ("anonymous", "RssAnon")):
        peak[key] = max(peak[key], int(status[name].split()[0]) * 1024 / 1e6)


def baseline() -> None:
    """Load what compiling an ONNX file for XLA loads, and start XLA's client."""
    for part in ("driver", "frontends.onnx", "lowering.xla", "runtime.model"):
        import_module(f"gcomp.{part}")
    import_module("gcomp.runtime.xla.client").client("cpu")


def main() -> None:
    with peak_memory() as bare:
        pass
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?")
    parser.add_argument("--baseline", action="store_true")
    parser.add_argument("--target", default="xla:cpu")
    options = parser.parse_args()
    if options.baseline:
        with peak_memory() as peak:
            baseline()
        print(json.dumps({"memory": {key: peak[key] - bare[key] for key in peak}}))
        return
    import gcomp

    for part in LIBRARIES.get(options.target.partition(":")[0], ()):
        import_module(f"gcomp.{part}")
    marks: list[tuple[str, float]] = []
    with peak_memory() as peak:
        start = time.perf_counter()
        note = partial(_mark, marks)
        model = gcomp.compile(options.model, target=options.target, progress=note).prepare()
        total = time.perf_counter() - start
        note("")
    memory = {key: peak[key] - bare[key] for key in peak}
    found = {**model.timings, "total": total, "memory": memory, "processor": _by_phase(marks), "children": _children()}
    print(json.dumps({**found, "kernels": len(model.plan.binaries) and _kernels(model.plan.texts)}))


PHASES = ("import", "passes", "emission")
LIBRARIES = {"cpu": ("driver", "frontends.onnx", "lowering.llvm.lower", "runtime.cpu.executor")}
"""Family of targets -> what is loaded before the clock starts."""


def _mark(marks: list[tuple[str, float]], step: str) -> None:
    marks.append((step, time.process_time()))


def _by_phase(marks: list[tuple[str, float]]) -> dict[str, float]:
    """Seconds of this process's processors in each phase, from when each was begun."""
    begun = [(step, at) for step, at in marks if step in PHASES]
    ends = [at for _, at in begun[1:]] + [marks[-1][1]]
    return {step: end - at for (step, at), end in zip(begun, ends, strict=True)}


def _children() -> float:
    """Seconds of the processors of processes that this one began, which end now."""
    if process := sys.modules.get("gcomp.lowering.llvm.process"):
        process.CHILDREN.close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _kernels(texts: Mapping[str, str]) -> int:
    """How many different kernels a plan has."""
    return sum(name.endswith(".mlir") for name in texts)


if __name__ == "__main__":
    main()
