"""Curves of losses as an SVG: for each training the losses, and below them the gaps, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, LOSS, GAP, MARGIN, COLUMNS = 210, 110, 70, 40, 3
DECADES = (-8, -1)
"""The powers of ten between which gaps are drawn."""
EAGER, COMPILED = "#9aa5b1", "#d9480f"


@dataclass(frozen=True)
class Panel:
    """One training."""

    title: str
    eager: Sequence[float]
    compiled: Sequence[float]
    noise: Sequence[float]
    """The gap at each step between orders of summation, and..."""
    gap: Sequence[float]
    """...that between compiled and eager."""


def svg(panels: Sequence[Panel]) -> str:
    """The drawing."""
    width, height = WIDTH + MARGIN, LOSS + GAP + 2 * MARGIN
    rows = math.ceil(len(panels) / COLUMNS)
    parts = [
        f'<g transform="translate({i % COLUMNS * width + MARGIN},{i // COLUMNS * height + MARGIN})">{_panel(p)}</g>'
        for i, p in enumerate(panels)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * width + 10} {rows * height + 20}" '
        f'font-family="sans-serif" font-size="9"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{MARGIN}" y="14">loss, and below it the relative gap: <tspan fill="{EAGER}">eager, and its noise'
        f'</tspan>, <tspan fill="{COMPILED}">gcomp</tspan></text>{"".join(parts)}</svg>\n'
    )


def _panel(panel: Panel) -> str:
    top = max(*panel.eager, *panel.compiled)
    loss = [(panel.eager, EAGER, 4.0), (panel.compiled, COMPILED, 1.0)]
    gaps = [([_decade(g) for g in panel.noise], EAGER, 1.5), ([_decade(g) for g in panel.gap], COMPILED, 1.0)]
    marks = "".join(_mark(LOSS + 8 + GAP * (1 - _unit(d)), f"1e{d}") for d in range(DECADES[0], DECADES[1] + 1, 2))
    return (
        f'<text y="-6" font-weight="bold">{panel.title}</text>{_frame(0, LOSS)}{_frame(LOSS + 8, GAP)}'
        f"{_mark(4, f'{top:.1f}')}{_mark(LOSS, '0')}{marks}"
        + "".join(_line([v / top for v in values], 0, LOSS, color, thick) for values, color, thick in loss)
        + "".join(_line([_unit(v) for v in values], LOSS + 8, GAP, color, thick) for values, color, thick in gaps)
        + f'<text x="{WIDTH}" y="{LOSS + GAP + 20}" text-anchor="end">{len(panel.eager)} steps</text>'
    )


def _decade(gap: float) -> float:
    return math.log10(gap) if gap > 0 else DECADES[0]


def _unit(decade: float) -> float:
    low, high = DECADES
    return min(max((decade - low) / (high - low), 0.0), 1.0)


def _frame(y: float, height: float) -> str:
    return f'<rect y="{y}" width="{WIDTH}" height="{height}" fill="none" stroke="#ccc"/>'


def _mark(y: float, text: str) -> str:
    return f'<text x="-4" y="{y + 3:.1f}" text-anchor="end" fill="#555">{text}</text>'


def _line(values: Sequence[float], y: float, height: float, color: str, thick: float) -> str:
    step = WIDTH / max(len(values) - 1, 1)
    points = " ".join(f"{i * step:.1f},{y + height * (1 - v):.1f}" for i, v in enumerate(values))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{thick}"/>'
