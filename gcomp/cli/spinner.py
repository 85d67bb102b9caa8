"""A line on a terminal that says what is being done, and for how long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def spinner(first: str = "starting") -> Generator[Callable[[str], object]]:
    """While the body runs, the line is there; what it says is set by calling the value. Without a terminal, nothing."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # rich takes as long to load as a pass over a small model
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(first, total=None)
        yield lambda said: progress.update(task, description=said)


__all__ = ["spinner"]
