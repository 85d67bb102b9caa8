"""The table of `--timing`: what each pass took."""

from __future__ import annotations

from gcomp.cli.tables import FittedTable
from gcomp.passes.manager import Timing


def timing_table(timing: Timing, total: float | None = None) -> FittedTable:
    """The time that each pass took; with a `total` also what it has more: instruments, and reading weights."""
    columns = ("pass", "ms", "ops after", "changed")
    table = FittedTable(*columns, names=("pass",), numbers=("ms", "ops after"), title="passes")
    for name, seconds, ops, changed in timing.rows:
        table.add(name, f"{seconds * 1e3:.1f}", str(ops), "yes" if changed else "")
    passes = sum(row[1] for row in timing.rows)
    if total is not None:
        table.add("between passes: checks, weights", f"{(total - passes) * 1e3:.1f}", "", "")
    table.add("all", f"{(passes if total is None else total) * 1e3:.1f}", "", "")
    return table


__all__ = ["timing_table"]
