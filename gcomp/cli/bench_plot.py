"""The picture of `gcomp bench`: latency of each engine with its bounds, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gcomp.measuring.bench import Bench, Row

_COLOURS = ("#6b9df5", "#f0a05f", "#6fb088", "#b985ee", "#d47f7a", "#6db4b8")
_WIDTH, _ROW, _LEFT = 860, 26, 220


def plot(found: Bench) -> str:
    """Bars of latency, one for each engine at each of the sizes, with 95 % bounds and the rounds as dots."""
    engines = list(dict.fromkeys(row.engine for row in found.rows))
    most = max(max(row.seconds[2], _late(row)) for row in found.rows)
    groups = list(dict.fromkeys(_sizes(row) for row in found.rows))
    height = 60 + _ROW * len(found.rows) + 28 * len(groups) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"',
        ' font-family="system-ui, sans-serif">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600">{escape(found.model)}, {found.threads} '
        f"thread{'s' * (found.threads > 1)}: ms of a call</text>",
    ]
    y = 44
    for group in groups:
        if group:
            lines.append(f'<text x="16" y="{y + 18}" font-size="13" fill="#555">{escape(group)}</text>')
        y += 28 if group else 8
        for row in (row for row in found.rows if _sizes(row) == group):
            lines += _bar(row, y, most, _COLOURS[engines.index(row.engine) % len(_COLOURS)])
            y += _ROW
    lines.append(
        f'<text x="16" y="{height - 10}" font-size="11" fill="#777">bars: median; lines: 95 % bounds of the median; '
        "dots: rounds, in turn, as far as they fit</text></svg>"
    )
    return "\n".join(lines) + "\n"


def _late(row: Row) -> float:
    """A time that one round in ten takes longer than: those would leave no room for the others."""
    return sorted(row.rounds)[(9 * len(row.rounds)) // 10 - 1] if len(row.rounds) > 1 else row.seconds[2]


def _sizes(row: Row) -> str:
    return ", ".join(f"{name} = {size}" for name, size in row.sizes.items())


def _bar(row: Row, y: int, most: float, colour: str) -> Sequence[str]:
    def x(seconds: float) -> float:
        return _LEFT + seconds / most * (_WIDTH - _LEFT - 110)

    middle, low, high = row.seconds
    shown = [s for s in row.rounds if s <= most]
    dots = "".join(f'<circle cx="{x(s):.1f}" cy="{y + 10}" r="1.6" fill="#000" opacity="0.35"/>' for s in shown)
    return (
        f'<text x="{_LEFT - 10}" y="{y + 14}" font-size="13" text-anchor="end">{escape(row.engine)}</text>',
        f'<rect x="{_LEFT}" y="{y + 2}" width="{x(middle) - _LEFT:.1f}" height="16" rx="2" fill="{colour}"/>',
        f'<line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y + 10}" y2="{y + 10}" stroke="#000" stroke-width="2"/>',
        dots,
        f'<text x="{_WIDTH - 12}" y="{y + 14}" font-size="12" text-anchor="end">{middle * 1e3:.3f}</text>',
    )


__all__ = ["plot"]
