"""A profile as `gcomp run --profile` shows it."""

from __future__ import annotations

from gcomp.cli.tables import FittedTable
from gcomp.runtime.profiling import SHOWN, Profile, Row

_WORDS = ("kind", "step", "from")


def profile_table(profile: Profile) -> FittedTable:
    """The steps that take longest: measured, and predicted by the cost model where it knows them."""
    rows, whole = profile.rows, profile.step_seconds or 1.0
    cells = [_cells(row, whole) for row in rows[:SHOWN]]
    # A column that says nothing of any step (XLA's kernels have no place and no flops) is left out.
    columns = [name for name in (cells[0] if cells else ()) if any(cell[name] for cell in cells)]
    numbers = [name for name in columns if name not in _WORDS]
    table = FittedTable(*columns, names=("step",), places=("from",), numbers=numbers, title=profile.summary)
    for cell in cells:
        table.add(*[cell[name] for name in columns])
    rest, said = rows[SHOWN:], list[str]()
    if rest:
        said.append(f"{len(rest)} more take {1e6 * sum(row.seconds for row in rest):,.1f} us")
    if "predicted us" in columns:
        said.append(f"predicted: the cost model's roofline of {profile.architecture}, of a processor one core")
    table.caption = "; ".join(said) or None
    return table


def _cells(row: Row, whole: float) -> dict[str, str]:
    seconds = row.seconds or 1e-9
    return {
        "kind": row.kind,
        "step": row.label,
        "us": f"{1e6 * row.seconds:,.1f}",
        "share": f"{100 * row.seconds / whole:.1f} %",
        "predicted us": "" if row.predicted is None else f"{1e6 * row.predicted:,.1f}",
        "runs": str(row.count),
        "Gflop/s": f"{row.flops / seconds / 1e9:,.1f}" if row.flops else "",
        "GB/s": f"{row.bytes / seconds / 1e9:,.1f}" if row.bytes else "",
        "from": row.place,
    }


__all__ = ["profile_table"]
