"""`gcomp launch`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Annotated

import typer

from gcomp.errors import GcompError, UsageError

_POLL = 0.05
"""Seconds between two looks at the processes."""
_GRACE = 5.0
"""Seconds that a process has to end by itself, once another has failed."""
_COMMANDS = ("run", "train")
"""The commands that several processes run together."""


def launch(
    arguments: Annotated[list[str], typer.Argument(metavar="run|train MODEL.gcomp ...", help="the command to start")],
    processes: Annotated[int, typer.Option("--processes", "-n", min=1, help="how many processes to start")],
    timeout: Annotated[int, typer.Option(min=1, help="seconds that they wait for each other")] = 60,
) -> None:
    """Start the processes of a mesh on this machine.

    gcomp launch -n 4 -- run model.gcomp --random

    gcomp launch -n 4 -- train step.gcomp --data digits.npz --state trained.safetensors --every 100
    """
    if arguments[0] not in _COMMANDS:
        raise UsageError(f"gcomp launch starts {' or '.join(_COMMANDS)}, not {arguments[0]!r}")
    if own := [a for a in arguments if a.partition("=")[0] in ("--coordinator", "--processes", "--process-id")]:
        raise UsageError(f"{own[0]} is what gcomp launch says", fix="leave it out")
    # Imported here: other commands need nothing of XLA's.
    from gcomp.runtime.xla.joining import PARENT

    address = f"127.0.0.1:{_free_port()}"
    environment = {**os.environ, PARENT: str(os.getpid())}
    command = [sys.executable, "-m", "gcomp", *arguments, "--coordinator", address, "--processes", str(processes),
               "--timeout", str(timeout)]  # fmt: skip
    started: list[_Process] = []
    try:
        for number in range(processes):
            started.append(_Process(number, [*command, "--process-id", str(number)], environment))
        _watch(started)
    finally:
        for process in started:
            process.end()


class _Process:
    """One of the processes. Its output goes on, that of all but the first with its number in front."""

    def __init__(self, number: int, command: Sequence[str], environment: dict[str, str]) -> None:
        self.number = number
        pipe = subprocess.PIPE
        self.running = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )
        self.said: list[str] = []
        """The last lines of its errors."""
        streams = ((self.running.stdout, sys.stdout, False), (self.running.stderr, sys.stderr, True))
        self._readers = [threading.Thread(target=self._pass_on, args=stream, daemon=True) for stream in streams]
        for reader in self._readers:
            reader.start()

    def _pass_on(self, source: IO[str], to: IO[str], is_error: bool) -> None:
        for line in source:
            if is_error:
                self.said = [*self.said[-20:], line.rstrip()]
            if not line.startswith("[Gloo]"):  # which tells of each connection
                to.write(line if self.number == 0 and not is_error else f"[{self.number}] {line}")
                to.flush()

    def end(self) -> None:
        """End it, and wait until its output is told."""
        if self.running.poll() is None:
            self.running.terminate()
            try:
                self.running.wait(_GRACE)
            except subprocess.TimeoutExpired:
                self.running.kill()
                self.running.wait()
        for reader in self._readers:
            reader.join(_GRACE)


def _watch(started: Sequence[_Process]) -> None:
    """Wait for all to end. Where one fails, the others have a moment to say why they do, too. Raises GcompError."""
    failed: list[_Process] = []
    since = 0.0
    while any(process.running.poll() is None for process in started):
        now = [process for process in started if process.running.poll() not in (None, 0)]
        if now and not failed:
            since = time.monotonic()
        failed += [process for process in now if process not in failed]
        if failed and time.monotonic() - since > _GRACE:
            break
        time.sleep(_POLL)
    failed += [p for p in started if p.running.poll() not in (None, 0) and p not in failed]
    if failed:
        # The others ended because of it, and may have been seen before.
        first = min(failed, key=lambda p: (p.running.returncode > 0, "another process" in (_reason(p) or "")))
        raise GcompError(
            f"process {first.number} of {len(started)} {_ending(first.running.returncode)}", why=_reason(first),
            fix="all others were ended; start them again",
        )  # fmt: skip


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"


def _reason(process: _Process) -> str | None:
    """What it said last."""
    return next((line.removeprefix("error: ") for line in process.said if line.startswith("error: ")), None)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
