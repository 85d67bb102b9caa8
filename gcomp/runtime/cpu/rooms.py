"""Memory of results that nobody holds any more, for those of later calls: fresh pages cost more than many kernels.

Views of an array hold it, so its count of references says whether a caller still has any.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MOST = 1 << 28
"""Bytes that are kept, at most."""
_LEAST = 1 << 16
"""Bytes of a result from which they are: smaller ones come from pages that the process has."""


class Rooms:
    """Bytes for results by size: those that are given out are remembered, and given out again once they are let go."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._bytes = most, 0
        self._rooms: dict[int, deque[Array]] = {}

    def take(self, size: int) -> Array:
        """So many bytes, which hold anything."""
        if not _COUNTS or not _LEAST <= size <= self._most:
            return np.empty(size, np.uint8)
        rooms = self._rooms.setdefault(size, deque())
        for _ in range(len(rooms)):
            try:
                # Whoever takes a room out of the queue is the only one to look at it.
                box = [rooms.popleft()]
            except IndexError:
                break
            is_free = sys.getrefcount(box[0]) == _ALONE
            rooms.append(box[0])
            if is_free:
                return box[0]
        return self._add(size)

    def _add(self, size: int) -> Array:
        """A new room. Where there would be too much, all others are forgotten."""
        room = np.empty(size, np.uint8)
        if self._bytes + size > self._most:
            self._rooms, self._bytes = {}, 0
        self._rooms.setdefault(size, deque()).append(room)
        self._bytes += size
        return room


def _counts() -> bool:
    """Whether this Python counts references, and one thread at a time runs."""
    enabled: Any = getattr(sys, "_is_gil_enabled", lambda: True)
    return sys.implementation.name == "cpython" and enabled()


def _alone() -> int:
    box = [np.empty(1, np.uint8)]
    return sys.getrefcount(box[0])


_COUNTS, _ALONE = _counts(), _alone()
"""Whether counts of references can be relied on, and the count of what one list alone holds."""

ROOMS = Rooms()
"""Those of this process."""

__all__ = ["MOST", "ROOMS", "Rooms"]
