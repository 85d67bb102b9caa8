"""Child processes with Triton in them, each with an environment that no setting of the user's reaches."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gcomp.lowering.triton import worker

SECONDS = 600.0
"""How long one kernel may take: LLVM and ptxas have no bound of their own."""

REQUESTS = 500
"""A process is replaced after so many kernels: what compilers leave behind adds up."""

_KEPT = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "TMPDIR",
         "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")  # fmt: skip
"""What a process inherits: Triton and LLVM read many other variables, and compile to something else by them.

The last two name another ptxas, for drivers that are older than Triton's; `gcomp.lowering.triton.cache` knows of them.
"""


class Died(Exception):
    """The process ended by itself, or took too long; the text says which."""


def _folders(*modules: str) -> list[str]:
    """Where modules lie. Not all of `sys.path`: a script's own folder may hold a `re.py`, which is not Python's."""
    found = [importlib.util.find_spec(name) for name in modules]
    places = [spec.submodule_search_locations for spec in found if spec is not None]
    return list(dict.fromkeys(str(Path(place).parent) for locations in places if locations for place in locations))


class Worker:
    """A child process that answers one request at a time. It is started when it is needed, and again once it has died.

    `mode` is one of `worker.MODES`, `seconds` the limit for one request.
    """

    def __init__(self, mode: str, seconds: float = SECONDS) -> None:
        self._mode, self._seconds = mode, seconds
        self._answered = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._errors: IO[bytes] | None = None

    def ask(self, header: Mapping[str, Any], blobs: Sequence[bytes | memoryview] = ()) -> worker.Answer:
        """The answer to a request. Raises Died."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        late = threading.Event()
        timer = threading.Timer(self._seconds, lambda: (late.set(), process.kill()))
        timer.start()
        try:
            worker.send(process.stdin, dict(header), blobs)  # type: ignore[arg-type]
            answer = worker.receive(process.stdout)  # type: ignore[arg-type]
        except BrokenPipeError:
            answer = None
        finally:
            timer.cancel()
        if answer is None:
            why = f"it took longer than {self._seconds:g} s" if late.is_set() else self._last_words(process)
            self.close()
            raise Died(why)
        self._answered += 1
        if self._answered >= REQUESTS:
            self.close()
        return answer

    def close(self) -> None:
        """End the process, and remove what it left."""
        process, self._process, self._answered = self._process, None, 0
        if process is not None:
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    assert stream is not None
                    stream.close()
            process.kill()
            process.wait()
        if self._errors is not None:
            self._errors.close()
        if self._folder is not None:
            self._folder.cleanup()
        self._errors = self._folder = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._folder = tempfile.TemporaryDirectory(prefix="gcomp-triton-", ignore_cleanup_errors=True)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open for as long as the process is
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(worker.__file__)), self._mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=self._environment(self._folder.name),
            start_new_session=True,  # Ctrl+C is for the parent, which then ends it
        )
        return self._process

    def _environment(self, folder: str) -> dict[str, str]:
        return {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "PYTHONPATH": os.pathsep.join(_folders("triton", "numpy")),
            "TRITON_CACHE_DIR": folder,
            # Names of files and numbers of lines would make the binary depend on where it was made.
            "TRITON_DISABLE_LINE_INFO": "1",
            **({"TRITON_INTERPRET": "1"} if self._mode == "interpret" else {}),
        }

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait()
        how = f"it ended with {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
        assert self._errors is not None
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 2000))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"{how}: {lines[-1][:300]}" if lines else how
