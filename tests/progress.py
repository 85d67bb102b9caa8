"""Progress bars beside worker processes."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def worker_progress(console: Console) -> Progress:
    """A display whose updates ask for a refresh: workers are forked, so that it must not have a thread of its own."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, auto_refresh=False)
