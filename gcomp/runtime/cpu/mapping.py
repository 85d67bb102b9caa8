"""Machine code in memory: pages that are written once, checked, and from then on read and run only.

What is checked is what runs: the bytes are copied into private memory first, so that nobody who changes the file later
changes the code. No page is writable and executable at once.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from typing import Any

from gcomp.errors import ArtifactError
from gcomp.runtime.cpu.memory import Pages
from gcomp.runtime.cpu.plan import Code

_ENTRY: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_START: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, *(ctypes.c_void_p,) * 3)
_STOP: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Image:
    """An image that is mapped: `start` and `stop` begin and end a pool of threads.

    Python's lock is let go of while its functions run. The code stays as long as this object.
    """

    def __init__(self, code: Code, data: bytes | memoryview) -> None:
        """Raises ArtifactError for other bytes than the plan's, UnsupportedError where the system runs no new code."""
        self._pages = pages = Pages(len(data), "the code of the model")
        pages.fill(data)
        if hashlib.sha256(pages.view(len(data))).hexdigest() != code.sha256:
            raise ArtifactError(
                "The code of the model is damaged.",
                why=f"{code.image} does not match its SHA-256.",
                fix="Compile the model again.",
            )
        pages.make_code()
        self.bytes = len(data)
        self.start: Callable[[int, int, int | None, int | None, int | None], int] = _START(pages.address + code.start)
        self.stop: Callable[[int], None] = _STOP(pages.address + code.stop)

    def at(self, offset: int) -> int:
        """The address of a byte of the image."""
        return self._pages.address + offset

    def entry(self, at: int) -> Callable[[int], int]:
        """The function that runs a segment, which begins at a byte."""
        return _ENTRY(self.at(at))


__all__ = ["Image"]
