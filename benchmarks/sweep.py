"""Timing many models or operators by name, each by itself: one that fails is noted, and does not stop the others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Report, publish
from gcomp.measuring.timing import Timing, machine, pin

Measure = Callable[[str, int, int], dict[str, Timing]]
"""The timings of a name by competitor, in so many rounds, with so many threads."""


@dataclass
class Sweep:
    """What was timed, by name and competitor, and why what failed did."""

    timed: dict[str, dict[str, Timing]]
    notes: list[str]
    threads: int
    out: Path | None

    def publish(self, name: str, title: str, columns: list[str], rows: list[list[str]]) -> None:
        """Print a table, write it with all timings, and exit: with 1 if something failed."""
        timings = {n: {k: t.cpu.tolist() for k, t in found.items()} for n, found in self.timed.items()}
        title = f"{title}, processor time, {self.threads} thread(s)"
        publish(name, [Report(title, columns, rows, self.notes)], {"machine": machine(), "timings": timings}, self.out)
        sys.exit(bool(self.notes))


def sweep(description: str | None, names: Callable[[], Iterable[str]], measure: Measure, rounds: int) -> Sweep:
    """Time what the command line names, or all `names`, which are asked once it is read."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="directory for the results")
    options: Any = parser.parse_args()
    pin(options.threads)
    found = Sweep({}, [], options.threads, options.out)
    for name in options.only.split(",") if options.only else names():
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            found.timed[name] = measure(name, options.rounds, options.threads)
        except Exception as error:
            found.notes.append(f"{name}: {type(error).__name__}: {error}")
    return found
