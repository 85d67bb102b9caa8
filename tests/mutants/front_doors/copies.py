"""Tasks that each need a copy of the package for themselves, several at a time."""

from __future__ import annotations

import queue
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

from tests.mutants.front_doors.doors import Scratch
from tests.mutants.front_doors.trying import Controls
from tests.progress import worker_progress

ROOT = Path(__file__).resolve().parents[3]
Task = TypeVar("Task")
Answer = TypeVar("Answer")


class Copies:
    """As many copies of the package as there are jobs, and one without changes for the controls."""

    def __init__(self, place: Path, jobs: int) -> None:
        self.jobs = jobs
        self.controls = Controls(Scratch(ROOT, place / "clean"))
        self._free: queue.Queue[Scratch] = queue.Queue()
        for number in range(jobs):
            self._free.put(Scratch(ROOT, place / f"copy{number}"))

    def answers(
        self, tasks: Sequence[Task], work: Callable[[Scratch, Task], Answer], name: str, console: Console
    ) -> Iterator[tuple[Answer, Progress]]:
        """The answers as they come, with the progress bar to print above; no copy is used by two at a time."""

        def alone(task: Task) -> Answer:
            scratch = self._free.get()
            try:
                return work(scratch, task)
            finally:
                self._free.put(scratch)

        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(self.jobs))
            progress = stack.enter_context(worker_progress(console))
            bar = progress.add_task(name, total=len(tasks))
            for future in as_completed([pool.submit(alone, task) for task in tasks]):
                answer = future.result()
                progress.update(bar, advance=1, refresh=True)
                yield answer, progress


@contextmanager
def copies(prefix: str, jobs: int) -> Iterator[Copies]:
    """Copies in a folder that goes at the end."""
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        yield Copies(Path(folder), jobs)
