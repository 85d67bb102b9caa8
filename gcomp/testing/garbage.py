"""When Python looks for garbage in processes that make thousands of programs."""

from __future__ import annotations

import gc


def collect_garbage() -> None:
    """Collect garbage now, and never by itself: programs are cyclic, and Python would look for them all the time.

    What is left then are tables that grow, which are not looked through again: that took a seventh of a long run.
    """
    gc.disable()
    gc.collect()
    gc.freeze()


__all__ = ["collect_garbage"]
