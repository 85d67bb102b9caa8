"""Where the user's code stands: which operation runs, and the line that called it."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from types import CodeType

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr

from gcomp.ir import locations
from gcomp.owners import is_own, is_users


class Site(threading.local):
    """What this thread is doing."""

    def __init__(self) -> None:
        self.location: LocationAttr | None = None
        """The operation that runs now, in the user's line; None in the user's own code."""
        self.op_by_op = False
        """Whether functions run op by op (`gcomp.eager`) instead of being traced."""


SITE = Site()


def place_here(name: str) -> LocationAttr:
    """The innermost line of the user's code (else of a library's), as the place of something called `name`."""
    frame = outer = inspect.currentframe()
    while frame is not None and not is_users(frame.f_code.co_filename):
        if outer is not None and is_own(outer.f_code.co_filename):
            outer = frame
        frame = frame.f_back
    frame = frame or outer
    return (
        locations.named_location(name) if frame is None else _place(name, frame.f_code, frame.f_lasti, frame.f_lineno)
    )


@lru_cache(8192)
def _place(name: str, code: CodeType, last: int, line: int) -> LocationAttr:
    position = next(islice(code.co_positions(), last // 2, None), None)
    column = position[2] if position is not None and position[2] is not None else 0
    place = FileLineColLoc(StringAttr(code.co_filename), IntAttr(line), IntAttr(column + 1))
    return locations.named_location(name, place) if name else place


def where_here(name: str = "") -> str:
    """The user's line, for an error message; the operation's own where one runs."""
    return locations.describe(SITE.location or place_here(name))


@contextmanager
def users_code() -> Generator[None]:
    """Inside of an operation, run a function of the user's: its operations have lines of their own."""
    previous, SITE.location = SITE.location, None
    try:
        yield
    finally:
        SITE.location = previous
