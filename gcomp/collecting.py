"""Python's garbage collector while many objects are made that live: it would look at all of them again and again."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

OBJECTS = 400_000
"""Objects made and not freed between two collections; by default 700, or 2,000. IR for so many takes about 80 MB."""

_LOCK = threading.Lock()
_INSIDE: list[tuple[int, int, int]] = []
"""For each body that is being run, the thresholds from before the first of them."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect garbage rarely while the body runs, in all threads. A collector that is off stays off, and
    thresholds that are higher stay.
    """
    with _LOCK:
        _INSIDE.append(_INSIDE[0] if _INSIDE else gc.get_threshold())
        if len(_INSIDE) == 1:
            objects, *others = _INSIDE[0]
            gc.set_threshold(objects and max(OBJECTS, objects), *others)
    try:
        yield
    finally:
        with _LOCK:
            before = _INSIDE.pop()
            if not _INSIDE:
                gc.set_threshold(*before)


__all__ = ["rare_collections"]
