"""Interleaved timing and honest ratios.

On a shared machine a time alone means little: the clock, the caches and the neighbours change between one minute
and the next. So competitors run in turn, round after round; what is compared is their ratio within each round; and
the ratio comes with a bootstrap interval. Beside wall time there is CPU time, which waiting for a core leaves out.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

PACKAGES = ("gcomp", "jax", "jaxlib", "onnxruntime", "torch", "transformers", "onnx", "xdsl", "numpy")
RESAMPLES = 4000
MOST_BATCHES = 8


@dataclass(frozen=True)
class Timing:
    """Seconds per call of one competitor, one entry per round."""

    wall: np.ndarray
    cpu: np.ndarray

    def clock(self, name: str) -> np.ndarray:
        return {"wall": self.wall, "cpu": self.cpu}[name]


@dataclass(frozen=True)
class Ratio:
    """The median of per-round ratios, with 95 % bootstrap bounds of that median."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


def interleave(
    competitors: Mapping[str, Callable[[], Any]],
    rounds: int,
    slot_seconds: float = 0.05,
    resolved: Callable[[Mapping[str, Timing]], bool] = lambda timings: True,
) -> dict[str, Timing]:
    """Time every competitor `rounds` times, in turn, each round starting with another one.

    A slot is one untimed call, which brings the competitor's data back into the caches, and then as many timed
    calls as fill `slot_seconds`; its mean is the round's sample. While the timings are not `resolved`, `rounds` more
    follow, up to `MOST_BATCHES` times in all.
    """
    names = list(competitors)
    calls = {name: calls_per_slot(run, slot_seconds) for name, run in competitors.items()}
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    timings: dict[str, Timing] = {}
    for _ in range(MOST_BATCHES):
        for i in range(rounds):
            for name in names[i % len(names) :] + names[: i % len(names)]:
                run, count = competitors[name], calls[name]
                run()
                wall_start, cpu_start = time.perf_counter(), time.process_time()
                for _ in range(count):
                    run()
                wall[name].append((time.perf_counter() - wall_start) / count)
                cpu[name].append((time.process_time() - cpu_start) / count)
        timings = {name: Timing(np.array(wall[name]), np.array(cpu[name])) for name in names}
        if resolved(timings):
            break
    return timings


def calls_per_slot(run: Callable[[], Any], slot_seconds: float) -> int:
    run()  # the first call may still compile or allocate
    start = time.perf_counter()
    run()
    return max(1, math.ceil(slot_seconds / (time.perf_counter() - start)))


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> Ratio:
    """The ratio of two competitors that were timed in the same rounds."""
    per_round = numerator / denominator
    low, high = np.percentile(np.median(resample(per_round), axis=1), (2.5, 97.5))
    return Ratio(float(np.median(per_round)), float(low), float(high))


def geometric_mean(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Ratio:
    """The geometric mean over workloads of their median ratios; each workload's rounds are resampled by themselves."""
    logs = [np.log(numerator / denominator) for numerator, denominator in pairs]
    middle = np.mean([np.median(log) for log in logs])
    spread = np.mean([np.median(resample(log), axis=1) for log in logs], axis=0)
    low, high = np.percentile(spread, (2.5, 97.5))
    return Ratio(float(np.exp(middle)), float(np.exp(low)), float(np.exp(high)))


def resample(samples: np.ndarray) -> np.ndarray:
    """`RESAMPLES` bootstrap resamples, one per row; the same ones every time."""
    chosen = np.random.default_rng(0).integers(0, len(samples), (RESAMPLES, len(samples)))
    return samples[chosen]


def pin(threads: int) -> None:
    """Keep this process on `threads` cores. Call it before jax starts: XLA counts the cores it may use."""
    allowed = sorted(os.sched_getaffinity(0))
    if threads > len(allowed):
        raise SystemExit(f"--threads {threads}: this process may use only {len(allowed)} cores")
    os.sched_setaffinity(0, allowed[:threads])


def steady_allocator() -> None:
    """Make glibc keep freed memory in the processes started from now on, whichever library asks for it.

    Left alone it adapts as it goes: whether a 16 MB result costs 4,000 page faults or none differs from one process
    to the next, and the fastest run of a memory-bound workload from the slowest by a factor of three.
    """
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(32 << 20))  # the largest it accepts
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(4 << 30))
    os.environ.setdefault("MALLOC_ARENA_MAX", "1")  # a thread's own arena would not keep it


def machine() -> dict[str, Any]:
    """What a reader needs to know about the machine: processor, cores, load, versions."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := package_version(name))},
    }


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
