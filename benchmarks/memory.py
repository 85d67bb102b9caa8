"""Offsets for published buffers: does each instance fit its capacity, how long does it take, how good is the peak?

    python -m benchmarks.memory --instances DIR [--seconds 60] [--method auto]

DIR holds CSV files in MiniMalloc's format; the number before `.csv` in a file's name is its capacity, without one the
lowest peak is looked for. A line is printed for each; exits 1 if one does not fit.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from benchmarks import minimalloc_csv
from gcomp.errors import GcompError, UsageError
from gcomp.memory.assign import METHODS, assign
from gcomp.memory.problem import lower_bound

COLUMNS = "{:24} {:>12} {:>12} {:>12} {:>8}  {}"


def instances(directory: Path) -> list[Path]:
    """The CSV files of a folder, by name."""
    if not directory.is_dir():
        raise UsageError(f"There is no folder {str(directory)!r}.", fix="pass the folder that holds the CSV files")
    if not (found := sorted(directory.glob("*.csv"))):
        raise UsageError(f"The folder {str(directory)!r} holds no .csv file.")
    return found


def capacity_of(path: Path) -> int | None:
    """The number before `.csv` in a file's name."""
    last = path.stem.rpartition(".")[2]
    return int(last) if last.isascii() and last.isdigit() and last != path.stem else None


def line(path: Path, seconds: float, method: str, console: Console) -> tuple[str, bool]:
    """The line of one instance, and whether it fits."""
    capacity = capacity_of(path)
    problem = minimalloc_csv.read(path, capacity)
    with console.status(f"{path.name}: {len(problem)} buffers, at most {seconds:g} s"):
        plan = assign(problem, seconds=seconds, method=method)
    fits = capacity is None or plan.peak <= capacity
    verdict = ("fits" if fits else "does not fit") + f" ({plan.method}{', out of time' * plan.out_of_time})"
    shown = "-" if capacity is None else str(capacity)
    return COLUMNS.format(path.stem, plan.peak, lower_bound(problem), shown, f"{plan.seconds:.2f}", verdict), fits


def main() -> None:
    """Plan every instance, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=Path, required=True, help="a folder of CSV files")
    parser.add_argument("--seconds", type=float, default=60.0, help="the most that one instance may take")
    parser.add_argument("--method", default="auto", choices=list(METHODS))
    options = parser.parse_args()
    console = Console(stderr=True)
    all_fit = True
    try:
        paths = instances(options.instances)
        print(COLUMNS.format("name", "peak", "bound", "capacity", "seconds", ""), flush=True)
        for path in paths:
            text, fits = line(path, options.seconds, options.method, console)
            all_fit &= fits
            print(text, flush=True)
    except GcompError as error:
        sys.exit(str(error))
    sys.exit(not all_fit)


if __name__ == "__main__":
    main()
