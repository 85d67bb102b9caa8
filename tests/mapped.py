"""Images of machine code in this process, without the runtime: mapped, sealed, and called through ctypes."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

from gcomp.lowering.llvm.image import Image

LIBC = ctypes.CDLL(None, use_errno=True)


class Mapped:
    """An image at some page of this process, which can be run and not be written to."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._memory = mmap.mmap(-1, len(image.code), prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self._memory.write(image.code)
        self.begin = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        size = -(-len(image.code) // mmap.PAGESIZE) * mmap.PAGESIZE
        done = LIBC.mprotect(ctypes.c_void_p(self.begin), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC)
        assert done == 0, ctypes.get_errno()

    def address(self, name: str) -> int:
        return self.begin + self.image.entries[name]

    def function(self, name: str, arguments: Sequence[Any], result: Any = None) -> Any:
        """A function of the image, to be called with values of these types."""
        return ctypes.CFUNCTYPE(result, *arguments)(self.address(name))


class Pool:
    """A pool of threads of a mapped image, in memory of its own."""

    def __init__(self, mapped: Mapped, threads: int, create: int | None = None) -> None:
        self._memory = ctypes.create_string_buffer(256 + 64 * threads + 64)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64
        pointers = [ctypes.c_void_p] * 3
        start = mapped.function("gcomp_pool_start", [ctypes.c_void_p, ctypes.c_int64, *pointers], ctypes.c_int64)
        self._stop = mapped.function("gcomp_pool_stop", [ctypes.c_void_p])
        create = libc("pthread_create") if create is None else create
        self.threads = start(self.address, threads, create, libc("pthread_join"), libc("syscall"))

    def stop(self) -> None:
        self._stop(self.address)


def libc(name: str) -> int:
    """The address of a function of the C library."""
    address = ctypes.cast(getattr(LIBC, name), ctypes.c_void_p).value
    assert address is not None
    return address
