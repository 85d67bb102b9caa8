"""A worker process that evaluates StableHLO text, and the messages that cross its pipes.

A message is the length of its head (8 bytes, little-endian), a JSON head, and the raw bytes of its arrays. Nothing is
pickled. The worker's own standard output goes to its standard error, so that no library can disturb the messages.
"""

from __future__ import annotations

import json
import math
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np

from gcomp.dtypes import dtype_of, text_of

Array = np.ndarray[Any, Any]
Kind = Literal["refused", "crashed", "timeout"]

_LAST_WORDS = re.compile(r"Check failed|LLVM ERROR|Assertion|terminate called|^F\d{4} ")
"""What libraries write before they end the process; stack traces come after it."""

_CHUNK = 1 << 20
_LENGTH = 8


@dataclass(frozen=True)
class OracleFailure:
    """Why an oracle has no answer: it refused the program, its process died, or it ran out of time."""

    reason: str
    kind: Kind


class _Died(Exception):
    """The worker closed its pipe."""


class _TimedOut(Exception):
    """The worker did not answer in time."""


def pack(head: dict[str, Any], arrays: Sequence[Array]) -> bytes:
    """One message."""
    described = [{"dtype": text_of(a.dtype), "shape": list(a.shape)} for a in arrays]
    text = json.dumps({**head, "arrays": described}).encode()
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, *(np.ascontiguousarray(a).tobytes() for a in arrays)])


def unpack(read: Callable[[int], bytes]) -> tuple[dict[str, Any], list[Array]]:
    """The head and arrays of one message; `read(n)` returns exactly n bytes."""
    head = cast("dict[str, Any]", json.loads(read(int.from_bytes(read(_LENGTH), "little"))))
    arrays: list[Array] = []
    for entry in head["arrays"]:
        dtype, shape = dtype_of(entry["dtype"]), tuple(entry["shape"])
        arrays.append(np.frombuffer(read(math.prod(shape) * dtype.itemsize), dtype).reshape(shape))
    return head, arrays


class WorkerOracle:
    """Runs StableHLO text in a worker process of the given evaluator. Usable as a context manager."""

    EVALUATOR = ""
    """The module of `gcomp.testing.oracles` whose `make_evaluator` the worker runs."""

    def __init__(self, *, timeout: float = 60.0) -> None:
        self.timeout = timeout
        self.restarts = 0
        """How many workers had to be replaced."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def run(self, text: str, inputs: Sequence[Array]) -> list[Array] | OracleFailure:
        """The outputs of `@main` for the inputs, or why there are none."""
        process = self._process or self._start()
        deadline = time.monotonic() + self.timeout
        try:
            self._send(process, pack({"text": text}, inputs))
            head, arrays = unpack(partial(self._receive, process, deadline))
        except (_Died, BrokenPipeError):
            return OracleFailure(self._stop(), "crashed")
        except _TimedOut:
            self._stop()
            return OracleFailure(f"no answer within {self.timeout:g} s", "timeout")
        return arrays if head["ok"] else OracleFailure(head["reason"], "refused")

    def close(self) -> None:
        """End the worker."""
        if self._process is not None:
            self._stop()

    def __enter__(self) -> WorkerOracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> subprocess.Popen[bytes]:
        root = str(Path(__file__).parents[3])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the worker
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gcomp.testing.oracles.worker", self.EVALUATOR],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        )
        self._end = weakref.finalize(self, self._process.kill)
        return self._process

    def _send(self, process: subprocess.Popen[bytes], message: bytes) -> None:
        stream = cast("IO[bytes]", process.stdin)
        stream.write(message)
        stream.flush()

    def _receive(self, process: subprocess.Popen[bytes], deadline: float, count: int) -> bytes:
        descriptor = cast("IO[bytes]", process.stdout).fileno()
        parts: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while count:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise _TimedOut
                part = os.read(descriptor, min(count, _CHUNK))
                if not part:
                    raise _Died
                parts.append(part)
                count -= len(part)
        return b"".join(parts)

    def _stop(self) -> str:
        """End the worker; how it died, in words."""
        process, log = self._process, self._log
        self._process = self._log = None
        self.restarts += 1
        if process is None or log is None:
            return "the worker is not running"
        self._end.detach()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                _close(stream)
        try:
            code = process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        log.seek(0)
        lines = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        log.close()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = next((line for line in lines if _LAST_WORDS.search(line)), lines[-1] if lines else "")
        return f"the worker ended with {how}" + (f": {said[:300]}" if said else "")


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        return
