"""A worker process that judges mutants: one that takes too long, or more memory than it may, ends the process only.

It fails gcomp where that was at work. A peer that dies (ONNX Runtime does, on some mutants) only leaves the mutant
without a comparison.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import onnx

from tools.onnx_judge import FAILED, Verdict, judge, quieten
from tools.onnx_mutants import Mutant

CONTEXT = multiprocessing.get_context("spawn")
"""Forks of a process that runs threads, as XLA does, may wait for locks that nobody will open."""

_START_SECONDS = 300


@dataclass(frozen=True)
class Limits:
    """Of one mutant: seconds, and mebibytes that the process may add."""

    seconds: float = 60
    mebibytes: int = 4096


class Worker:
    """A process that judges one mutant after another, and is replaced when it dies."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._process: Any = None
        self._pipe: Connection | None = None

    def judge(self, case: Mutant, with_target: bool) -> Verdict:
        """What gcomp and its peers make of a mutant."""
        pipe = self._started()
        pipe.send((case.name, case.mutators, case.model.SerializeToString(), case.inputs, with_target))
        step, deadline = "gcomp", time.monotonic() + self.limits.seconds
        while pipe.poll(max(0.0, deadline - time.monotonic())):
            try:
                kind, content = pipe.recv()
            except (EOFError, ConnectionError):
                self._process.join()
                return self._lost(step, f"the process ended with {self._process.exitcode}")
            if kind == "done":
                return content
            step = content
        return self._lost(step, f"no answer within {self.limits.seconds:g} s")

    def _started(self) -> Connection:
        if self._pipe is None:
            self._pipe, there = CONTEXT.Pipe()
            self._process = CONTEXT.Process(target=_serve, args=(there, self.limits.mebibytes), daemon=True)
            self._process.start()
            there.close()
            if not self._pipe.poll(_START_SECONDS):
                raise TimeoutError("the worker does not start")
            self._pipe.recv()
        return self._pipe

    def _lost(self, step: str, problem: str) -> Verdict:
        self.close()
        outcome = FAILED if step in ("gcomp", "target") else f"no comparison: the {step} died"
        return Verdict(outcome, f"{problem} in {step}" if outcome == FAILED else "", problem)

    def close(self) -> None:
        """End the process."""
        if self._pipe is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._pipe = None


@contextmanager
def worker(limits: Limits | None = None) -> Iterator[Worker]:
    """A worker that ends with the block."""
    made = Worker(limits or Limits())
    try:
        yield made
    finally:
        made.close()


def _serve(pipe: Connection, mebibytes: int) -> None:
    quieten()
    # Before the limit: libraries reserve much that they never use.
    import onnxruntime  # noqa: F401  # pyright: ignore[reportUnusedImport]

    import gcomp.frontends.onnx  # noqa: F401  # pyright: ignore[reportUnusedImport]

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    reserved = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (reserved + (mebibytes << 20), resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send(("ready", ""))
    while True:
        try:
            name, mutators, model, inputs, with_target = pipe.recv()
        except EOFError:
            return
        case = Mutant(name, mutators, onnx.ModelProto.FromString(model), inputs)
        pipe.send(("done", judge(case, with_target, lambda step: pipe.send(("step", step)))))
