"""A page that shows launches under a machine's roofline: flops for each byte from left to right, flops a second upward.

A launch cannot be above the lines: to the left of where they meet the bandwidth bounds it, to the right the arithmetic.
How far it lies below says what is lost: to the cost of launching, or, where times were measured, to the kernel itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log10

from gcomp.analysis.machines import Machine
from gcomp.html import html_table
from gcomp.report.costs import Cost
from gcomp.report.page import View
from gcomp.runtime.profiling import Profile

WIDTH, HEIGHT, EDGE = 1200, 640, 60

COLUMNS = ("kernel", "launches", "predicted us", "measured us", "flops/byte", "Gflop/s", "GB/s", "of the roof", "from")


@dataclass(frozen=True)
class Point:
    """Launches of one kernel with equal costs: how many, what one of them costs, and its measured seconds."""

    cost: Cost
    count: int
    measured: float | None

    @property
    def seconds(self) -> float:
        """The time of one launch: measured, else predicted."""
        return self.measured or self.cost.seconds or 0.0

    @property
    def intensity(self) -> float:
        """Flops for each byte."""
        return self.cost.flops / max(1, self.cost.bytes)

    def roof(self, machine: Machine) -> float:
        """The least seconds that the machine takes, without the launch."""
        return max(self.cost.bytes / machine.bandwidth, self.cost.flops / self.cost.rate)

    def bound(self, machine: Machine) -> str:
        """What the roof is, of the two, or the launch where that takes longer."""
        if self.roof(machine) < machine.launch:
            return "launch"
        return "memory" if self.cost.bytes / machine.bandwidth >= self.cost.flops / self.cost.rate else "arithmetic"


def measured_by_text(costs: Sequence[Cost], profile: Profile) -> dict[str, float]:
    """The seconds of a launch by its kernel's text: the mean over all launches of the kernel in a profile's calls."""
    names: dict[tuple[str, str, int, int], dict[str, None]] = {}
    for c in costs:
        names.setdefault((c.label, c.place, c.flops, c.bytes), {})[c.kernel.text] = None
    times: dict[str, list[float]] = {}
    for sample in profile.samples:
        # Several kernels of one place that cost the same, such as the sides of a border, share what they took.
        for text in names.get((sample.label, sample.place, sample.flops, sample.bytes), ()):
            times.setdefault(text, []).append(sample.seconds)
    return {text: sum(found) / len(found) for text, found in times.items()}


def points(costs: Sequence[Cost], measured: Mapping[str, float]) -> list[Point]:
    """Launches that cost the same, gathered; those first that take longest together."""
    counts: dict[Cost, int] = {}
    for cost in costs:
        counts[cost] = counts.get(cost, 0) + 1
    found = [Point(cost, count, measured.get(cost.kernel.text)) for cost, count in counts.items()]
    return sorted(found, key=lambda p: -p.count * p.seconds)


def cells(point: Point, machine: Machine) -> list[str]:
    """The row of a table for a point."""
    cost, seconds = point.cost, point.seconds
    share = f"{100 * point.roof(machine) / seconds:.0f} % ({point.bound(machine)})" if seconds else ""
    rates = [f"{work / seconds / 1e9:,.0f}" if seconds else "" for work in (cost.flops, cost.bytes)]
    measured = "" if point.measured is None else f"{1e6 * point.measured:.1f}"
    predicted = f"{1e6 * (cost.seconds or 0):.1f}"
    return [
        cost.label, str(point.count), predicted, measured, f"{point.intensity:.2f}", *rates, share, cost.place,
    ]  # fmt: skip


def roofline_view(found: Sequence[Point], machine: Machine) -> View:
    """The points on a machine, drawn and as a table."""
    total = sum(point.count * point.seconds for point in found)
    known = sum(point.count for point in found if point.measured is not None)
    idle = sum(point.count for point in found if not point.cost.flops)
    launches = sum(point.count for point in found)
    differs = machine.contraction != machine.wide_contraction
    narrow = f", {_rate(machine.contraction)}flop/s on matrix units in 16 bits" if differs else ""
    summary = (
        f"{launches} launches on {machine.name}, together {1e6 * total:,.0f} us; {known} of them are measured. {idle} "
        f"compute nothing, and stand in the table only. Bandwidth {_rate(machine.bandwidth)}B/s; arithmetic "
        f"{_rate(machine.wide_contraction)}flop/s in f32{narrow}."
    )
    table = html_table(COLUMNS, [cells(point, machine) for point in found], left=(COLUMNS[0], COLUMNS[-1]))
    return View(summary + " Hover over a point for its launch; its area is its time.", _svg(found, machine), table)


def _rate(value: float) -> str:
    """A rate with its unit's prefix."""
    return f"{value / 1e12:.2f} T" if value >= 1e12 else f"{value / 1e9:,.0f} G"


class _Axes:
    """Logarithmic axes that hold some points, and where the roofs meet."""

    def __init__(self, across: Sequence[float], up: Sequence[float]) -> None:
        self.left, self.right = log10(min(across)) - 0.3, log10(max(across)) + 0.3
        self.low, self.high = log10(min(up)) - 0.3, log10(max(up)) + 0.3

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels."""
        across = (log10(x) - self.left) / (self.right - self.left)
        up = (log10(y) - self.low) / (self.high - self.low)
        return EDGE + across * (WIDTH - 2 * EDGE), HEIGHT - EDGE - up * (HEIGHT - 2 * EDGE)


def _svg(found: Sequence[Point], machine: Machine) -> str:
    shown = [point for point in found if point.cost.flops and point.cost.bytes and point.seconds]
    roofs = (machine.contraction, machine.wide_contraction)
    meets = [rate / machine.bandwidth for rate in roofs]
    attained = [point.cost.flops / point.seconds for point in shown]
    axes = _Axes([0.1, *meets, *(p.intensity for p in shown)], [*roofs, *attained, 0.1 * machine.bandwidth])
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" xmlns="http://www.w3.org/2000/svg">', *_grid(axes)]
    start = 10**axes.left
    parts.append(_line("roof", axes.at(start, start * machine.bandwidth), axes.at(max(meets), max(roofs))))
    for rate, meet in zip(roofs, meets, strict=True):
        parts.append(_line("roof", axes.at(meet, rate), axes.at(10**axes.right, rate)))
    longest = max((p.count * p.seconds for p in shown), default=1.0)
    for point, rate in zip(shown, attained, strict=True):
        x, y = axes.at(point.intensity, rate)
        radius = 3 + 17 * (point.count * point.seconds / longest) ** 0.5
        kind = "predicted" if point.measured is None else "measured"
        told = f"{point.cost.label}, {point.count} times {1e6 * point.seconds:.1f} us {kind}\n{point.cost.place}"
        parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(told)}</title></circle>'
        )
    return "\n".join([*parts, "</svg>"])


def _grid(axes: _Axes) -> list[str]:
    """A line for each power of ten, named."""
    parts: list[str] = []
    for power in range(int(axes.left) - 1, int(axes.right) + 2):
        if axes.left < power < axes.right:
            (x, low), (_, high) = axes.at(10**power, 10**axes.low), axes.at(10**power, 10**axes.high)
            parts.append(_line("grid", (x, low), (x, high)))
            parts.append(f'<text x="{x:.0f}" y="{low + 20:.0f}" text-anchor="middle">{10.0**power:g}</text>')
    for power in range(int(axes.low) - 1, int(axes.high) + 2):
        if axes.low < power < axes.high:
            (left, y), (right, _) = axes.at(10**axes.left, 10**power), axes.at(10**axes.right, 10**power)
            parts.append(_line("grid", (left, y), (right, y)))
            parts.append(f'<text x="{left - 6:.0f}" y="{y + 4:.0f}" text-anchor="end">{10.0**power:.0e}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">flops for each byte</text>')
    parts.append(f'<text x="{EDGE}" y="{EDGE - 20}" text-anchor="middle">flop/s</text>')
    return parts


def _line(kind: str, first: tuple[float, float], last: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = first, last
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
