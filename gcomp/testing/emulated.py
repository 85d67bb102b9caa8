"""Machine code for another processor, which qemu's user mode runs: one process of it for all kernels.

`emulated.c`, built by a cross compiler (Debian: gcc-aarch64-linux-gnu), runs what comes on its input.
"""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from gcomp.errors import InternalError
from gcomp.runtime.cpu.variants import VARIANTS
from gcomp.testing.machine import Call

Array = np.ndarray[Any, Any]


def missing(variant: str) -> str:
    """Why code for a kind of processor cannot be run by an emulator here; empty where it can."""
    if variant not in VARIANTS:
        return f"{variant!r} is none of {', '.join(VARIANTS)}"
    machine = VARIANTS[variant].machine
    lacking = [name for name in (_compiler(machine), _emulator(machine)) if shutil.which(name) is None]
    return f"{' and '.join(lacking)} {'are' if lacking[1:] else 'is'} not installed" if lacking else ""


class Emulator:
    """A `Place` (`gcomp.testing.machine`): `Emulator("aarch64")(code, memory, calls)`. The process starts when needed.

    InternalError where it ends on a request, as code that leaves its memory makes it.
    """

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def __call__(self, code: bytes, memory: Sequence[Array], calls: Sequence[Call]) -> None:
        arrays = [np.ascontiguousarray(array) for array in memory]
        request = [_words(len(code), len(arrays), len(calls)), code]
        for array in arrays:
            request += [_words(array.nbytes), array.tobytes()]
        for call in calls:
            grid = [(False, size) for size in call.grid]
            slots = [*call.arguments, *grid]
            request.append(_words(call.entry, int(np.prod(call.grid)), len(slots)))
            request += [_words(int(is_memory), value) for is_memory, value in slots]
        answer = self._ask(b"".join(request), sum(array.nbytes for array in arrays))
        at = 0
        for array in memory:
            data = answer[at : at + array.nbytes]
            array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)
            at += array.nbytes

    def _ask(self, request: bytes, size: int) -> bytes:
        process = self._running()
        try:
            stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
            stdin.write(request)
            stdin.flush()
            answer = stdout.read(size)
        except BrokenPipeError:
            answer = b""
        if len(answer) != size or process.poll() is not None:
            self._process = None
            process.kill()
            raise InternalError(
                f"The emulated process for {self._machine} ended.", why=f"its status is {process.wait()}"
            )
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        """The process, of this process and not of one that this is a fork of."""
        if self._process is None or self._owner != os.getpid():
            command = [_emulator(self._machine), str(_program(self._machine))]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._owner = os.getpid()
            weakref.finalize(self, self._process.kill)
        return self._process


def _words(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


@cache
def _program(machine: str) -> Path:
    """The program that runs requests, built once."""
    folder = tempfile.TemporaryDirectory(prefix="gcomp-emulated-")
    _FOLDERS.append(folder)
    path = Path(folder.name) / "program"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([_compiler(machine), "-O1", "-static", "-o", str(path), str(source)], check=True)
    return path


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Of programs, which are removed when this process ends."""


def _compiler(machine: str) -> str:
    return "gcc" if machine == platform.machine() else f"{machine.replace('_', '-')}-linux-gnu-gcc"


def _emulator(machine: str) -> str:
    return f"qemu-{machine}"


__all__ = ["Emulator", "missing"]
