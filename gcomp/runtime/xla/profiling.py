"""The time of XLA's own kernels in a call, as XLA's profiler says it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

from gcomp.runtime.profiling import Recording

_profiler: Any = import_module("jaxlib._profiler")

HOST = "gcomp host step "
"""What traces of host steps are called, before their function."""


def host_step(function: str) -> Any:
    """A context in which a host step runs: a trace that is running notes it."""
    return _profiler.TraceMe(HOST + function)


def record(call: Callable[[], Sequence[Any]], recording: Recording) -> None:
    """Do a call, and note the time of each kernel of XLA's, and of each host step."""
    options = _profiler.ProfileOptions()
    options.python_tracer_level = 0
    recording.architecture = "XLA"
    session, began = _profiler.ProfilerSession(options), time.perf_counter_ns()
    try:
        for result in call():
            wait = getattr(result, "block_until_ready", None)
            if wait is not None:
                wait()
    finally:
        data = session.stop()
    found = sorted(_events(data), key=lambda event: event[2])
    for kind, name, start, took in found:
        recording.add(kind, name, "", began + int(start), int(took))


def _events(data: bytes) -> Iterator[tuple[str, str, float, float]]:
    """Kernels and host steps: kind, name, begin and length in nanoseconds; of those in one another the innermost."""
    profile: Any = import_module("jax.profiler").ProfileData.from_serialized_xspace(data)
    for line in (line for plane in profile.planes for line in plane.lines):
        open_: list[tuple[str, str, float, float]] = []
        for event in sorted(_named(line.events), key=lambda event: (event[2], -event[3])):
            while open_ and open_[-1][2] + open_[-1][3] <= event[2]:
                yield open_.pop()
            if open_:
                open_.pop()  # it holds this one, as a loop does
            open_.append(event)
        yield from open_


def _named(events: Any) -> Iterator[tuple[str, str, float, float]]:
    for event in events:
        if event.name.startswith(HOST):
            yield "host", event.name.removeprefix(HOST), event.start_ns, event.duration_ns
        elif (kernel := dict(event.stats).get("hlo_op")) is not None:
            yield "kernel", str(kernel), event.start_ns, event.duration_ns


__all__ = ["host_step", "record"]
