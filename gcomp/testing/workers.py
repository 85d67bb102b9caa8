"""Worker processes: a task that dies, hangs or eats memory costs itself and nothing else."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import re
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_STACK = re.compile(r"\*\*\* |PC: @|\s*@\s+0x")
"""How lines begin that handlers of signals write."""

TASKS_PER_WORKER = 200
"""A worker is replaced after so many tasks: what compiled programs leave behind adds up."""


@dataclass(frozen=True)
class Limits:
    """Of one task: seconds, and bytes that its process may take beside what the caller had loaded.

    Where others want the processors too, seconds last longer. `until` is a moment of `time.monotonic` at which all
    that is not done is given up.
    """

    seconds: float
    memory: int
    until: float = math.inf


@dataclass(frozen=True)
class Died:
    """The process ended by itself; `detail` has its exit code or signal, and the last line that it wrote before."""

    detail: str


@dataclass(frozen=True)
class Hung:
    """The process was ended at the time limit."""


@dataclass
class _Worker(Generic[T]):
    process: Any
    connection: Connection
    errors: Any
    task: T | None = None
    started: float = 0.0
    done: int = field(default=0)


def run_tasks(
    work: Callable[[T], R], tasks: Iterable[T], count: int, limits: Limits, *, per_worker: int = TASKS_PER_WORKER
) -> Iterator[tuple[T, R | Died | Hung]]:
    """Each task with its result, as they end. Workers are forked: they have what the caller has loaded.

    Tasks are taken from the iterable when a worker is free, so it may be endless, or end when the time is up. What is
    not done at the limits' last moment is not among them. A worker ends after `per_worker` of them: one, where a task
    leaves the process in no state for another.
    """
    pending, more = iter(tasks), True
    workers: list[_Worker[T]] = []
    try:
        while more or any(worker.task is not None for worker in workers):
            if time.monotonic() >= limits.until:
                return
            while more and (free := _free(work, workers, count, limits)) is not None:
                more = _give(free, pending)
            busy = [worker for worker in workers if worker.task is not None]
            if not busy:
                continue
            patience = limits.seconds * _crowding()
            rest = max(0.0, min(limits.until, min(w.started for w in busy) + patience) - time.monotonic())
            ready = wait([worker.connection for worker in busy], timeout=rest)
            for worker in busy:
                task = worker.task
                if worker.connection in ready:
                    result = _receive(worker)
                elif time.monotonic() >= worker.started + patience:
                    result = Hung()
                else:
                    continue
                if isinstance(result, (Died, Hung)) or worker.done >= per_worker:
                    _end(worker)
                    workers.remove(worker)
                assert task is not None
                yield task, result
    finally:
        for worker in workers:
            _end(worker)


def _crowding() -> float:
    """How many processes wait for each processor, at least one."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _give(worker: _Worker[T], pending: Iterator[T]) -> bool:
    """Send the next task, if there is one."""
    for task in pending:
        worker.task, worker.started = task, time.monotonic()
        worker.connection.send(task)
        return True
    return False


def _free(work: Callable[[T], R], workers: list[_Worker[T]], count: int, limits: Limits) -> _Worker[T] | None:
    for worker in workers:
        if worker.task is None:
            return worker
    if len(workers) >= count:
        return None
    workers.append(_start(work, limits, [worker.connection for worker in workers]))
    return workers[-1]


def _start(work: Callable[[T], R], limits: Limits, others: Sequence[Connection]) -> _Worker[T]:
    """A worker beside those that `others` are connected to."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
    given = (work, theirs, [ours, *others], errors.fileno(), limits.memory)
    process = context.Process(target=_serve, args=given, daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, errors)


def _serve(
    work: Callable[[T], R], connection: Connection, inherited: Sequence[Connection], errors: int, memory: int
) -> None:
    # What the caller had is its own to collect: to look through it here would copy every page of it, too.
    gc.freeze()
    for other in inherited:  # so that `connection` ends with the caller, whatever ends it
        other.close()
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    # Private memory that is written to; mapped files and reserved addresses are free.
    most = _private_memory() + memory
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        os.ftruncate(errors, 0)
        result = work(task)
        try:
            connection.send(result)
        except BrokenPipeError:
            return


def _private_memory() -> int:
    """Bytes of this process that RLIMIT_DATA counts: in a fork, all that the caller had, which may exceed any limit.

    Source: proc(5), `data + stack` of /proc/pid/statm. 0 where the system has no such file.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except FileNotFoundError:
        return 0
    return pages * resource.getpagesize()


def _receive(worker: _Worker[T]) -> Any:
    try:
        result = worker.connection.recv()
    except (EOFError, ConnectionError):
        worker.process.join()
        return Died(_why(worker))
    worker.task = None
    worker.done += 1
    return result


def _why(worker: _Worker[T]) -> str:
    code = worker.process.exitcode or 0
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    worker.errors.seek(0)
    text: str = worker.errors.read().decode(errors="replace")
    lines = text.strip().splitlines()
    # Libraries such as jaxlib have handlers of signals, which write where the process stood, address by address.
    said = list(takewhile(lambda line: not _STACK.match(line), lines)) or lines[:1]
    return f"{name}: {said[-1][:200]}" if said else name


def _end(worker: _Worker[T]) -> None:
    worker.connection.close()
    worker.process.kill()
    worker.process.join()
    worker.errors.close()
