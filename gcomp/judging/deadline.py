"""A moment until which work may go on, which a task hands down to all that it does."""

from __future__ import annotations

import time

from gcomp.errors import UnsupportedError


class Deadline:
    """So many seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left; at least a little, so that it may serve as a timeout."""
        return max(0.1, self.end - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the time is spent."""
        return time.monotonic() >= self.end

    def check(self) -> None:
        """UnsupportedError where the time is spent."""
        if self.is_over:
            raise UnsupportedError("the time ended before this was decided", fix="give it more time")
