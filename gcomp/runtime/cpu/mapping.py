"""Machine code in memory: pages that are written once, checked, and from then on read and run only.

What is checked is what runs: the bytes are copied into private memory first, so that nobody who changes the file later
changes the code. No page is writable and executable at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import weakref
from collections.abc import Callable
from typing import Any

from gcomp.errors import ArtifactError, UnsupportedError
from gcomp.runtime.cpu.plan import Code

_ENTRY: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_START: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, *(ctypes.c_void_p,) * 3)
_STOP: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Image:
    """An image that is mapped: `run` is its entry, `start` and `stop` begin and end a pool of threads.

    Python's lock is let go of while they run. The code stays as long as this object, and when the process ends: threads
    may be in it.
    """

    def __init__(self, code: Code, data: bytes | memoryview) -> None:
        """Raises ArtifactError for other bytes than the plan's, UnsupportedError where the system runs no new code."""
        self.bytes = len(data)
        self.address = _mapped(max(self.bytes, 1))
        weakref.finalize(self, _unmap, self.address, self.bytes).atexit = False
        ctypes.memmove(self.address, bytes(data), self.bytes)
        held = (ctypes.c_char * self.bytes).from_address(self.address)
        if hashlib.sha256(held).hexdigest() != code.sha256:
            why = f"{code.image} does not match its SHA-256."
            raise ArtifactError("The code of the model is damaged.", why=why, fix="Compile the model again.")
        _protect(self.address, self.bytes)
        self.run: Callable[[int], int] = _ENTRY(self.address + code.entry)
        self.start: Callable[[int, int, int, int, int], int] = _START(self.address + code.start)
        self.stop: Callable[[int], None] = _STOP(self.address + code.stop)


def _libc(name: str, result: Any, *arguments: Any) -> Any:
    found = ctypes.CDLL(None, use_errno=True)[name]  # a new object: its types are not those of other users
    found.restype, found.argtypes = result, arguments
    return found


_mmap = _libc(
    "mmap", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
)
_munmap = _libc("munmap", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_mprotect = _libc("mprotect", ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_FAILED = ctypes.c_void_p(-1).value


def _mapped(size: int) -> int:
    """The address of new pages, readable and writable, that are the process's own."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if address == _FAILED:
        raise UnsupportedError(f"There is no memory for {size:,} bytes of code.", why=os.strerror(ctypes.get_errno()))
    return address


def _unmap(address: int, size: int) -> None:
    _munmap(address, size)


def _protect(address: int, size: int) -> None:
    """Let pages be read and run, and not be written to any more. Raises UnsupportedError."""
    if _mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise UnsupportedError(
            "This system does not let a process run code that it has loaded.",
            why=f"mprotect: {os.strerror(ctypes.get_errno())}",
            fix="Allow it (on SELinux: execmem), or compile the model for xla:cpu.",
        )


__all__ = ["Image"]
