"""Threads for the code of a model: a pool in memory of ours, whose threads run functions of the image alone.

The first call that wants threads starts them. A process that was forked has none of them, and its first call starts
new ones. When the process ends nothing is done: the threads run no Python, and sleep or end with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import weakref

from gcomp.errors import UsageError
from gcomp.processors import processors
from gcomp.runtime.cpu.mapping import Image
from gcomp.runtime.cpu.memory import Pages
from gcomp.runtime.environment import THREADS, check_whole, number_in

_HEAD, _EACH = 256, 64
"""Bytes of a pool's memory, and of them for each thread."""

MOST = 1024
"""Threads that a model may have."""

_FUNCTIONS = ("pthread_create", "pthread_join", "syscall")
"""What the code needs of the C library."""


def thread_count() -> int:
    """How many threads a model computes with: as the environment says, else one for each processor.

    Raises UsageError where the variable is wrong.
    """
    return min(number_in(THREADS) or processors(), MOST)


def check_count(count: int) -> int:
    """A number of threads. Raises UsageError for one that cannot be."""
    if check_whole("threads", count) > MOST:
        raise UsageError(f"a model computes with 1 to {MOST} threads, not {count}")
    return count


class Pool:
    """The threads that an image computes with, the caller's among them. They end with this object."""

    def __init__(self, image: Image, threads: int) -> None:
        self._image, self.threads = image, threads
        self._pages = Pages(_HEAD + _EACH * threads, "threads")
        self.address = self._pages.address
        self._lock = threading.Lock()
        self.ready = False
        """Whether there are threads in this process. Calls ask, and start them where there are none."""
        self._owner: list[int] = []
        """The process that started them last."""
        weakref.finalize(self, _end, image, self._pages, self._owner).atexit = False
        _pools.add(self)

    def start(self) -> None:
        """Start the threads, if nobody has. Where the system gives fewer, there are fewer."""
        with self._lock:
            if self.ready:
                return
            functions = [ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value for name in _FUNCTIONS]
            # The process's signals are for Python's threads.
            masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                self.threads = self._image.start(self.address, self.threads, *functions)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            self._owner[:] = [os.getpid()]
            self.ready = True

    def forked(self) -> None:
        """This is another process now, which has none of the threads."""
        self._lock, self.ready = threading.Lock(), False


def _end(image: Image, pages: Pages, owner: list[int]) -> None:
    if owner == [os.getpid()]:
        image.stop(pages.address)


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forked() -> None:
    for pool in list(_pools):
        pool.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

__all__ = ["MOST", "Pool", "check_count", "thread_count"]
