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


def check_whole(name: str, value: object) -> int:
    """A number that a setting of this name got. Raises UsageError for what is no whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} is a whole number, at least 1, and not {value!r}")
    return value


__all__ = ["THREADS", "check_whole", "number_in"]
