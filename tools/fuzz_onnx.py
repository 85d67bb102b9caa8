"""Tries mutants of the ONNX suite's models in worker processes, against ONNX Runtime, and prints what came of them.

    python tools/fuzz_onnx.py --count 20000 --seed 1            2 workers, one mutant in 25 through XLA too
    python tools/fuzz_onnx.py --seed 1 --only 4711              one mutant again, with its model and what happens

A mutant that takes too long, or more memory than it may, ends its worker and is counted as failed; a peer that dies
is not. Exits with 1 if any mutant failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import onnx
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tools import onnx_mutants
from tools.onnx_mutants import Verdict

CONTEXT = multiprocessing.get_context("fork")
"""Workers share the samples, which take seconds to make."""


def work(pipe: Connection, seed: int, every: int, mebibytes: int) -> None:
    """Judge the mutants whose numbers come through the pipe."""
    onnx_mutants.quieten()
    import gcomp.frontends.onnx  # noqa: F401 - before the limit: libraries reserve much that they never use

    resource.setrlimit(resource.RLIMIT_AS, (_reserved() + (mebibytes << 20), resource.RLIM_INFINITY))
    while True:
        number = pipe.recv()
        if number is None:
            return
        pipe.send(("step", "making"))
        case = onnx_mutants.mutant(seed, number)
        with_target = bool(every) and number % every == 0
        verdict = onnx_mutants.judge(case, with_target, lambda step: pipe.send(("step", step)))
        pipe.send(("done", (case.name, case.mutators, verdict)))


def _reserved() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


@dataclass
class Worker:
    """A worker process, what it works on, and since when."""

    process: Any
    pipe: Connection
    number: int = -1
    step: str = ""
    started: float = 0.0

    def give(self, number: int) -> None:
        """Let it judge a mutant."""
        self.number, self.started = number, time.monotonic()
        self.pipe.send(number)


class Campaign:
    """The workers, and the tally of what they find."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.outcomes: Counter[str] = Counter()
        self.failures: list[str] = []
        self.notes: list[str] = []

    def run(self) -> None:
        """Judge all mutants."""
        numbers = iter(range(self.options.start, self.options.start + self.options.count))
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, auto_refresh=False) as progress:
            task = progress.add_task("mutants", total=self.options.count)
            workers = [self._start() for _ in range(self.options.workers)]
            for worker in list(workers):
                self._next(worker, numbers, workers)
            while workers:
                ready = wait([w.pipe for w in workers], timeout=1)
                for i, worker in enumerate(list(workers)):
                    verdict = self._hear(worker, worker.pipe in ready)
                    if verdict is None:
                        continue
                    self._count(worker.number, *verdict)
                    progress.update(task, advance=1, description=f"{len(self.failures)} failed")
                    if not worker.process.is_alive():
                        worker = workers[i] = self._start()
                    self._next(worker, numbers, workers)
                progress.refresh()

    def _start(self) -> Worker:
        here, there = CONTEXT.Pipe()
        options = self.options
        process = CONTEXT.Process(
            target=work, args=(there, options.seed, options.every, options.mebibytes), daemon=True
        )
        process.start()
        there.close()
        return Worker(process, here)

    def _next(self, worker: Worker, numbers: Any, workers: list[Worker]) -> None:
        number = next(numbers, None)
        if number is not None:
            worker.give(number)
            return
        worker.pipe.send(None)
        worker.process.join()
        workers.remove(worker)

    def _hear(self, worker: Worker, ready: bool) -> tuple[str, str, Verdict] | None:
        """The verdict of a worker that has one, or that does not answer any more."""
        problem = ""
        if ready:
            try:
                kind, content = worker.pipe.recv()
                if kind == "done":
                    return content
                worker.step = content
                return None
            except EOFError:
                worker.process.join()
                problem = f"the process ended with {worker.process.exitcode}"
        elif time.monotonic() - worker.started > self.options.seconds:
            worker.process.kill()
            worker.process.join()
            problem = f"no answer within {self.options.seconds} s"
        if not problem:
            return None
        outcome = "FAILED" if worker.step in ("gcomp", "target") else f"no comparison: {worker.step} died"
        return "?", "?", Verdict(outcome, f"{problem} in {worker.step}")

    def _count(self, number: int, name: str, mutators: str, verdict: Verdict) -> None:
        self.outcomes[verdict.outcome] += 1
        line = f"{number}\t{verdict.outcome}\t{name}\t{mutators}\t{verdict.problem or verdict.note}"
        if verdict.outcome == "FAILED":
            self.failures.append(line)
        self.notes.append(line)


def show(seed: int, number: int) -> None:
    """One mutant, and what comes of it."""
    case = onnx_mutants.mutant(seed, number)
    console = Console()
    console.print(escape(f"{case.name}: {case.mutators}\n{onnx.printer.to_text(case.model)}"), highlight=False)
    for name, array in (case.inputs or {}).items():
        console.print(escape(f"{name}: {array.dtype}{array.shape} {array.reshape(-1)[:8]}"), highlight=False)
    if case.inputs is not None:
        for peer in ("runtime", "evaluator"):
            result = getattr(onnx_mutants, peer)(case)
            console.print(escape(f"{peer}: {str(result)[:1500]}"), highlight=False)
    console.print(escape(str(onnx_mutants.judge(case, True, lambda step: None))), highlight=False)


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=25, help="one in so many through XLA too; 0 for none")
    parser.add_argument("--seconds", type=float, default=60, help="the longest that a mutant may take")
    parser.add_argument("--mebibytes", type=int, default=4096, help="the most memory that a worker may add")
    parser.add_argument("--log", type=Path, help="write a line for each mutant")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one mutant, with its model")
    options = parser.parse_args()
    if options.only is not None:
        show(options.seed, options.only)
        return
    onnx_mutants.samples()
    campaign, started = Campaign(options), time.monotonic()
    campaign.run()
    console = Console()
    for outcome, count in campaign.outcomes.most_common():
        console.print(escape(f"{count:7} {outcome}"), highlight=False)
    console.print(f"{options.count} mutants, seed {options.seed}, {time.monotonic() - started:.0f} s", highlight=False)
    for line in campaign.failures[:50]:
        console.print(escape(line.replace("\t", "  ")), highlight=False)
    if options.log:
        options.log.write_text("\n".join(campaign.notes) + "\n", encoding="utf-8")
    sys.exit(1 if campaign.failures else 0)


if __name__ == "__main__":
    main()
