"""Memory for code to work in: pages of the process's own, results that are aligned, and a clear word where none is."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gcomp.errors import UnsupportedError
from gcomp.runtime.cpu.rooms import ROOMS

Array = np.ndarray[Any, Any]
ALIGNMENT = 64
"""What addresses of arenas and of large results are multiples of: the length of a line of the processor's caches."""

_LARGE = 1 << 12
"""Bytes from which it pays that a result is aligned better than NumPy aligns it."""


def _libc(name: str, result: Any, *arguments: Any) -> Any:
    found = ctypes.CDLL(None, use_errno=True)[name]  # a new object: its types are not those of other users
    found.restype, found.argtypes = result, arguments
    return found


_INT, _LONG, _ADDRESS, _SIZE = ctypes.c_int, ctypes.c_long, ctypes.c_void_p, ctypes.c_size_t
_mmap = _libc("mmap", _ADDRESS, _ADDRESS, _SIZE, _INT, _INT, _INT, _LONG)
_munmap = _libc("munmap", _INT, _ADDRESS, _SIZE)
_mprotect = _libc("mprotect", _INT, _ADDRESS, _SIZE, _INT)
_FAILED = ctypes.c_void_p(-1).value


class Pages:
    """New pages, zeros, which are given back with this object; not when the process ends, as threads may use them."""

    def __init__(self, size: int, what: str) -> None:
        """Raises UnsupportedError, which says for `what` the pages were, where there is no memory for them."""
        self.size = max(size, 1)
        refuse_too_large(size, what)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address: int = _mmap(None, self.size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if self.address == _FAILED:
            raise _no_memory(size, what, os.strerror(ctypes.get_errno()))
        weakref.finalize(self, _unmap, self.address, self.size).atexit = False

    def fill(self, data: bytes | memoryview) -> None:
        """Write bytes to the begin of the pages."""
        ctypes.memmove(self.address, bytes(data), len(data))

    def view(self, size: int) -> Any:
        """The first bytes of the pages, to be read."""
        return (ctypes.c_char * size).from_address(self.address)

    def make_code(self) -> None:
        """Let the pages be read and run, and not be written to any more. Raises UnsupportedError."""
        if _mprotect(self.address, self.size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise UnsupportedError(
                "This system does not let a process run code that it has loaded.",
                why=f"mprotect: {os.strerror(ctypes.get_errno())}",
                fix="Allow it (on SELinux: execmem), or compile the model for xla:cpu.",
            )


def _unmap(address: int, size: int) -> None:
    _munmap(address, size)


def refuse_too_large(size: int, what: str) -> None:
    """Raises UnsupportedError for more bytes than there can be: the system may promise them, and end the process."""
    if size > (limit := memory_limit()):
        raise _no_memory(size, what, f"this process may have {limit:,} bytes of memory in all")


def memory_limit() -> int:
    """How many bytes this process may have, as the machine and its control group say."""
    found = [sys.maxsize]
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        found += [int(text)] if text.isdigit() else []
    return min(found)


def _no_memory(size: int, what: str, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"There is no memory for {what}, which takes {size:,} bytes.",
        why=why,
        fix="Choose smaller sizes, or compile the model within a budget of memory (--memory-budget).",
    )


def result_array(shape: tuple[int, ...], dtype: np.dtype[Any], alignment: int = 1) -> Array:
    """Room for a result. Raises UnsupportedError where there is none."""
    size = math.prod(shape) * dtype.itemsize
    try:
        if size < _LARGE and alignment == 1:
            return np.empty(shape, dtype)
        room = ROOMS.take(size + ALIGNMENT)
    except (MemoryError, ValueError) as error:
        raise _no_memory(size, "a result", str(error)) from None
    start = -address_of(room) % ALIGNMENT
    return room[start : start + size].view(dtype).reshape(shape)


def _by_interface(array: Array) -> int:
    return array.__array_interface__["data"][0]


_HEADER = object.__basicsize__
_pointer = ctypes.c_void_p.from_address


def _by_layout(array: Array) -> int:
    """NumPy's C structure of an array begins, behind what all objects have, with the address of its data."""
    return _pointer(id(array) + _HEADER).value or 0


def _chosen() -> Callable[[Array], int]:
    """The way that takes a tenth of the time, where it gives the same."""
    if sys.implementation.name != "cpython":
        return _by_interface
    samples = [np.empty(3), np.empty((4, 5), np.uint8)[1:, 2:]]
    return _by_layout if all(_by_layout(array) == _by_interface(array) for array in samples) else _by_interface


address_of: Callable[[Array], int] = _chosen()
"""The address of an array's first element."""

__all__ = ["ALIGNMENT", "Array", "Pages", "address_of", "memory_limit", "refuse_too_large", "result_array"]
