"""How a launch is computed, and why, in words: for `gcomp explain` and reports."""

from __future__ import annotations

from gcomp.records import record


@record
class Account:
    """What is said of a launch: how it is computed, what the cost model says that this takes, and why it is done so.

    `seconds` are for one launch by one thread; `programs` are those of its grid, and `threads` says how they are
    shared. `layouts` say how operands and results lie in memory, `tile` what one program computes.
    """

    label: str
    place: str
    algorithm: str
    layouts: tuple[str, ...]
    tile: str
    programs: int
    threads: str
    seconds: float
    because: tuple[str, ...]


__all__ = ["Account"]
