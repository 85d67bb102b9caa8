"""Compile one ONNX file in this process and print, as JSON, seconds by phase and peak memory.

    python -m benchmarks.compile_one model.onnx
    python -m benchmarks.compile_one --baseline

`compile_time` runs this. It imports nothing but the standard library before gcomp, so that what gcomp brings in
counts as gcomp's. The baseline is what a process holds that has loaded gcomp and all that compiling needs, XLA's client
included, and has compiled nothing.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
    if sys.argv[1] == "--baseline":
        with peak_memory() as peak:
            baseline()
        print(json.dumps({"memory": {key: peak[key] - bare[key] for key in peak}}))
        return
    import gcomp

    with peak_memory() as peak:
        start = time.perf_counter()
        model = gcomp.compile(sys.argv[1], target="xla:cpu").prepare()
        total = time.perf_counter() - start
    memory = {key: peak[key] - bare[key] for key in peak}
    print(json.dumps({**model.timings, "total": total, "memory": memory}))


if __name__ == "__main__":
    main()
