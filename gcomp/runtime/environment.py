"""What the environment says of how models run."""

from __future__ import annotations

import os

from gcomp.errors import UsageError

THREADS = "GCOMP_THREADS"
"""The variable that says how many threads processors compute with."""


def number_in(variable: str) -> int | None:
    """The number that a variable of the environment holds; None without one. Raises UsageError for what is none."""
    text = os.environ.get(variable, "")
    if text and not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 31):
        raise UsageError(f"the variable {variable} is a number, not {text!r}", fix=f"set {variable}=8, or unset it")
    return int(text) if text else None


__all__ = ["THREADS", "number_in"]
