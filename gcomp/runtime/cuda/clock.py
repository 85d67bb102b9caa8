"""The time of each piece of work on a GPU, by events on its stream before and after."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from gcomp.dims import evaluate, parse
from gcomp.runtime.cuda.binding import BoundCopy, BoundFill, BoundLaunch, Work
from gcomp.runtime.cuda.driver import Driver, Handle
from gcomp.runtime.profiling import Recording


class Clock:
    """Times the work of one call at known sizes."""

    def __init__(self, driver: Driver, env: Mapping[str, int]) -> None:
        self._driver, self._env = driver, env
        self._timed: list[tuple[Work, Handle, Handle]] = []
        self._began = time.perf_counter_ns()

    @contextmanager
    def timing(self, work: Work, queue: Handle) -> Generator[None]:
        """Around the queueing of some work."""
        first, last = self._driver.event(), self._driver.event()
        self._driver.mark(first, queue)
        yield
        self._driver.mark(last, queue)
        self._timed.append((work, first, last))

    def note(self, recording: Recording) -> None:
        """Wait for the work, and add its samples to a recording."""
        origin = self._timed[0][1] if self._timed else 0
        for work, first, last in self._timed:
            took = self._driver.milliseconds(first, last)
            began = self._began + int(1e6 * self._driver.milliseconds(origin, first))
            match work:
                case BoundLaunch(kernel=kernel, step=step):
                    flops, moved = self._value(step.flops), self._value(step.bytes)
                    label = step.title or kernel.name
                    recording.add("kernel", label, step.place, began, int(1e6 * took), flops, moved, kernel.is_narrow)
                case BoundFill(span=span):
                    recording.add("fill", f"fill of {span.bytes:,} bytes", "", began, int(1e6 * took), 0, span.bytes)
                case BoundCopy(source=source):
                    moved = 2 * source.bytes
                    recording.add("copy", f"copy of {source.bytes:,} bytes", "", began, int(1e6 * took), 0, moved)
        for _, first, last in self._timed:
            self._driver.forget(first)
            self._driver.forget(last)

    def _value(self, size: str) -> int:
        return evaluate(parse(size), self._env)


__all__ = ["Clock"]
