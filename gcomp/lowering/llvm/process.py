"""Child processes with LLVM in them, which live as long as this one and answer a request at a time each."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, cast

from gcomp.lowering.llvm import emitter

SECONDS = 600.0
"""How long one module may take: LLVM has no bound of its own."""

REQUESTS = 2000
"""A process is replaced after so many modules: what compilers leave behind adds up."""


_KEPT = ("LD_LIBRARY_PATH", "PATH", "TMPDIR")
"""What a process inherits: nothing that what it makes could depend on."""


class Died(Exception):
    """The process ended by itself, or took too long (`late`); the text says which."""

    def __init__(self, why: str, *, late: bool = False) -> None:
        super().__init__(why)
        self.late = late


class Refused(Exception):
    """LLVM does not take the module; the text says why."""


class _Child:
    def __init__(self) -> None:
        found = importlib.util.find_spec("llvmlite")
        folder = str(Path(found.origin).parents[1]) if found is not None and found.origin else ""
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open for as long as the process is
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(emitter.__file__)), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,  # Ctrl+C is for the parent, whose end ends this one
        )
        self.answered = 0

    def ask(self, request: emitter.Request, seconds: float) -> bytes:
        """The answer to a request. Raises Died, after which there is no process, and Refused."""
        late = threading.Event()
        timer = threading.Timer(seconds, lambda: (late.set(), self._process.kill()))
        timer.start()
        try:
            emitter.send(cast(IO[bytes], self._process.stdin), json.dumps(request).encode())  # type: ignore[arg-type]
            answer = emitter.receive(cast(IO[bytes], self._process.stdout))  # type: ignore[arg-type]
        except BrokenPipeError:
            answer = None
        finally:
            timer.cancel()
        if answer is None:
            why = f"it took longer than {seconds:g} s" if late.is_set() else self._last_words()
            raise Died(why, late=late.is_set())
        self.answered += 1
        if answer.startswith(emitter.REFUSED):
            raise Refused(answer[1:].decode(errors="replace"))
        return answer[1:]

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
        self._process.kill()
        self._process.wait()

    def _last_words(self) -> str:
        code = self._process.wait()
        how = f"it ended with {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 20000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        said = next((line for line in lines if "ERROR" in line or "error:" in line), lines[-1] if lines else "")
        return f"{how}: {said[:500]}" if said else how


class Children:
    """The children of this process, which are started when they are needed. A fork of this process has none of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._others: list[list[_Child]] = []

    def prepare(self, count: int) -> None:
        """Start children until so many wait for a request: they load LLVM while this process does something else."""
        children = [self._take() for _ in range(count)]
        for child in children:
            self._give(child)

    def ask(self, request: emitter.Request, seconds: float = SECONDS) -> bytes:
        """The answer of some child to a request; threads may ask at once. Raises Died and Refused."""
        child = self._take()
        try:
            answer = child.ask(request, seconds)
        except Refused:
            self._give(child)
            raise
        except BaseException:
            child.close()
            raise
        self._give(child)
        return answer

    def close(self) -> None:
        """End all that wait for a request."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()

    def forget(self) -> None:
        """Leave them all to the process that this one is a fork of. They are kept: nobody here waits for their end."""
        self._lock = threading.Lock()
        self._others.append(self._idle)
        self._idle = []

    def _take(self) -> _Child:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Child()

    def _give(self, child: _Child) -> None:
        if child.answered >= REQUESTS:
            child.close()
            return
        with self._lock:
            self._idle.append(child)


CHILDREN = Children()
os.register_at_fork(after_in_child=CHILDREN.forget)
atexit.register(CHILDREN.close)

__all__ = ["CHILDREN", "SECONDS", "Children", "Died", "Refused"]
