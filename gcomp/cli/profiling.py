"""A profile as `gcomp run --profile` shows it."""

from __future__ import annotations

from gcomp.cli.tables import FittedTable
from gcomp.runtime.profiling import SHOWN, Profile


def profile_table(profile: Profile) -> FittedTable:
    """The steps that take longest: measured, and predicted by the cost model."""
    rows, whole = profile.rows, profile.step_seconds or 1.0
    columns = ("kind", "step", "us", "share", "predicted us", "runs", "Gflop/s", "GB/s", "from")
    table = FittedTable(*columns, names=("step",), places=("from",), numbers=columns[2:-1], title=profile.summary)
    for row in rows[:SHOWN]:
        seconds = row.seconds or 1e-9
        table.add(
            row.kind, row.label, f"{1e6 * row.seconds:,.1f}", f"{100 * row.seconds / whole:.1f} %",
            "" if row.predicted is None else f"{1e6 * row.predicted:,.1f}", str(row.count),
            f"{row.flops / seconds / 1e9:,.1f}" if row.flops else "",
            f"{row.bytes / seconds / 1e9:,.1f}" if row.bytes else "", row.place,
        )  # fmt: skip
    rest = rows[SHOWN:]
    more = f"{len(rest)} more take {1e6 * sum(row.seconds for row in rest):,.1f} us; " if rest else ""
    table.caption = f"{more}predicted: the cost model's roofline of one {profile.architecture}"
    return table


__all__ = ["profile_table"]
