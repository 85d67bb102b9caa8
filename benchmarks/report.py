"""Results as a table on the terminal, as markdown, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.workloads import cache_directory


@dataclass(frozen=True)
class Report:
    """A table of strings; every column but the first holds numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def show(self) -> None:
        table = Table(title=self.title)
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="right" if i else "left")
        for row in self.rows:
            table.add_row(*row)
        console = terminal()
        console.print(table)
        for note in self.notes:
            console.print(note, markup=False, highlight=False)

    def markdown(self) -> str:
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [f"| {' | '.join(cells)} |" for cells in (self.columns, rule, *self.rows)]
        return "\n".join([f"### {self.title}", "", *lines, "", *(f"{note}\n" for note in self.notes)])


def terminal() -> Console:
    """The terminal at its width; anything else, such as a log file, wide enough for every table."""
    return Console() if Console().is_terminal else Console(width=160)


def describe(machine: dict[str, Any]) -> str:
    """One line of markdown on where and with what the results were taken."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return f"{machine['processor']}, {machine['cores']} cores, load {machine['load'][0]}, {versions}.\n"


def publish(name: str, reports: Sequence[Report], data: dict[str, Any], directory: Path | None) -> None:
    """Print the reports; write `name.md` and `name.json` into `directory`, or into the cache.

    `data["machine"]` is what `timing.machine` returns.
    """
    directory = directory or cache_directory() / "results"
    directory.mkdir(parents=True, exist_ok=True)
    for report in reports:
        report.show()
    parts = [describe(data["machine"]), *(report.markdown() for report in reports)]
    (directory / f"{name}.md").write_text("\n".join(parts))
    (directory / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    terminal().print(f"wrote {directory / name}.md and .json", markup=False, highlight=False)
