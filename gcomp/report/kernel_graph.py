"""A page that shows kernels and what they pass on, from top to bottom, each with a bar for its share of the time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from gcomp.report.drawing import draw
from gcomp.report.page import View

BOX = (168, 42)
"""Pixels of a box."""

KINDS = (
    "loop", "reduction", "window", "matmul", "convolution", "winograd", "attention", "scan", "sort", "scatter",
    "library", "host",
)  # fmt: skip
"""Kinds of kernels, each of a color of its own in the style sheet; what is no kernel (control flow) has none."""


@dataclass(frozen=True)
class Box:
    """A kernel, or an op that stays as it is between kernels."""

    title: str
    kind: str
    told: str
    """What is shown beside it: ops, bytes, time, source."""
    share: float = 0.0
    """Its part of the time of all."""
    returned: bool = False


def graph_view(
    boxes: Sequence[Box],
    edges: Mapping[tuple[int, int], str],
    summary: str,
    known: Sequence[str] = KINDS,
    marked: Collection[tuple[int, int]] = (),
) -> View:
    """Boxes in an order in which every edge leads forward, drawn; each edge with what is said of it, some marked."""
    kinds = [kind for kind in known if any(box.kind == kind for box in boxes)]
    keys = "".join(f'<span class="key k-{kind}">{kind}</span>' for kind in kinds)
    bar = f'<div id="bar"><input id="find" placeholder="label, kind or place"> {keys}</div>'
    return View(summary, f"{bar}{_svg(boxes, edges, marked)}")


def _svg(boxes: Sequence[Box], edges: Mapping[tuple[int, int], str], marked: Collection[tuple[int, int]]) -> str:
    drawing = draw(len(boxes), list(edges))
    size = f'width="{drawing.width:.0f}" height="{drawing.height:.0f}"'
    parts = [f'<svg class="graph" {size} xmlns="http://www.w3.org/2000/svg">']
    for (a, b), told in edges.items():
        (x, y), (u, v), half = drawing.places[a], drawing.places[b], BOX[1] / 2
        points = [(x, y + half), *drawing.bends[a, b], (u, v - half)]
        mark = ' class="marked"' if (a, b) in marked else ""
        parts.append(
            f'<path data-from="k{a}" data-to="k{b}"{mark} d="{_curve(points)}"><title>{escape(told)}</title></path>'
        )
    longest = max((box.share for box in boxes), default=0.0) or 1.0
    parts += [_box(n, box, *drawing.places[n], box.share / longest) for n, box in enumerate(boxes)]
    return "\n".join([*parts, "</svg>"])


def _box(n: int, box: Box, x: float, y: float, part: float) -> str:
    width, height = BOX
    left, top = x - width / 2, y - height / 2
    label = box.title if len(box.title) <= 24 else f"{box.title[:23]}\u2026"
    return (
        f'<g class="box{" returned" if box.returned else ""} k-{box.kind}" id="k{n}">'
        f"<title>{escape(box.title)}\n{escape(box.told)}"
        f'</title><rect x="{left:.1f}" y="{top:.1f}" width="{width}" height="{height}" rx="7" class="face"/>'
        f'<rect x="{left:.1f}" y="{top + height - 5:.1f}" width="{width * part:.1f}" height="5" class="share"/>'
        f'<text x="{x:.1f}" y="{y - 4:.1f}" text-anchor="middle">{escape(label)}</text>'
        f'<text class="small" x="{x:.1f}" y="{y + 10:.1f}" text-anchor="middle">'
        f"{escape(box.told.splitlines()[0] if box.told else box.kind)}</text></g>"
    )


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """A smooth line through points, downwards at each."""
    parts = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (x, y), (u, v) in pairwise(points):
        half = (y + v) / 2
        parts.append(f"C{x:.1f},{half:.1f} {u:.1f},{half:.1f} {u:.1f},{v:.1f}")
    return " ".join(parts)


__all__ = ["Box", "graph_view"]
