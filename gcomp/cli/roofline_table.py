"""The launches that take longest, as `gcomp inspect --roofline` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.analysis.machines import Machine
from gcomp.cli.tables import FittedTable
from gcomp.report.roofline import COLUMNS, Point, cells

SHOWN = 10
"""Launches in the table: those that take longest."""


def roofline_table(found: Sequence[Point], machine: Machine) -> FittedTable:
    """The launches that take longest."""
    title = f"the {min(SHOWN, len(found))} costliest of {len(found)} kinds of launches"
    table = FittedTable(*COLUMNS, names=COLUMNS[:1], places=COLUMNS[-1:], numbers=COLUMNS[1:-1], title=title)
    for point in found[:SHOWN]:
        table.add(*cells(point, machine))
    return table


__all__ = ["roofline_table"]
