"""A page that shows kernels and what they pass on, from top to bottom, each with a bar for its share of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from gcomp.cli.layered import draw

COLUMN, LAYER, BOX = 190, 64, (170, 40)
"""Pixels between columns and layers, and those of a box."""

COLORS = {
    "loop": "#9ecae1", "reduction": "#a1d99b", "window": "#c7e9c0", "matmul": "#fdae6b", "convolution": "#fd8d3c",
    "attention": "#e6550d", "scan": "#dadaeb", "sort": "#bcbddc", "scatter": "#c994c7", "library": "#d9d9d9",
    "host": "#bdbdbd",
}  # fmt: skip
"""The color of each kind of kernel; what is no kernel (control flow) is white."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 24px; color: #222; }}
#bar {{ position: sticky; top: 0; background: #fff; padding: 8px 0; z-index: 1; }}
.key {{ display: inline-block; padding: 1px 8px; margin-right: 6px; border-radius: 4px; }}
path {{ fill: none; stroke: #999; }}
path.on {{ stroke: #d00; }}
rect {{ stroke: #555; }}
g.returned rect {{ stroke-width: 2.5; }}
g.faint, path.faint {{ opacity: 0.15; }}
text {{ pointer-events: none; }}
.small {{ font-size: 11px; fill: #444; }}
</style></head><body>
<h1>{title}</h1>
<div id="bar">{summary} <input id="find" placeholder="label, kind or place"> {keys}</div>
{svg}
<script>
const boxes = [...document.querySelectorAll("g.box")], lines = [...document.querySelectorAll("path")];
document.getElementById("find").addEventListener("input", (event) => {{
  const text = event.target.value.toLowerCase();
  const far = (box) => text && !box.textContent.toLowerCase().includes(text);
  boxes.forEach((box) => box.classList.toggle("faint", far(box)));
  const first = boxes.find((box) => text && !far(box));
  if (first) first.scrollIntoView({{block: "center", inline: "center"}});
}});
boxes.forEach((box) => {{
  const mine = lines.filter((line) => line.dataset.from === box.id || line.dataset.to === box.id);
  box.addEventListener("mouseenter", () => mine.forEach((line) => line.classList.add("on")));
  box.addEventListener("mouseleave", () => mine.forEach((line) => line.classList.remove("on")));
}});
</script>
</body></html>
"""


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


def graph_page(boxes: Sequence[Box], edges: Mapping[tuple[int, int], str], title: str, summary: str) -> str:
    """The page of boxes in an order in which every edge leads forward; each edge with what is said of it."""
    kinds = [kind for kind in COLORS if any(box.kind == kind for box in boxes)]
    keys = "".join(f'<span class="key" style="background: {COLORS[kind]}">{kind}</span>' for kind in kinds)
    svg = _svg(boxes, edges)
    return _PAGE.format(title=escape(title), summary=escape(summary), keys=keys, svg=svg)


def _svg(boxes: Sequence[Box], edges: Mapping[tuple[int, int], str]) -> str:
    drawing = draw(len(boxes), list(edges))
    width, height = drawing.width * COLUMN, drawing.height * LAYER
    parts = [f'<svg width="{width:.0f}" height="{height}" xmlns="http://www.w3.org/2000/svg">']
    for (a, b), told in edges.items():
        points = [_foot(drawing.places[a]), *[_middle(p) for p in drawing.bends[a, b]], _head(drawing.places[b])]
        parts.append(f'<path data-from="k{a}" data-to="k{b}" d="{_curve(points)}"><title>{escape(told)}</title></path>')
    longest = max((box.share for box in boxes), default=0.0) or 1.0
    parts += [_box(n, box, *_middle(drawing.places[n]), box.share / longest) for n, box in enumerate(boxes)]
    return "\n".join([*parts, "</svg>"])


def _box(n: int, box: Box, x: float, y: float, part: float) -> str:
    width, height = BOX
    left, top = x - width / 2, y - height / 2
    label = box.title if len(box.title) <= 24 else f"{box.title[:23]}\u2026"
    color = COLORS.get(box.kind, "#fff")
    return (
        f'<g class="box{" returned" if box.returned else ""}" id="k{n}"><title>{escape(box.title)}\n{escape(box.told)}'
        f'</title><rect x="{left:.1f}" y="{top:.1f}" width="{width}" height="{height}" rx="5" fill="{color}"/>'
        f'<rect x="{left:.1f}" y="{top + height - 5:.1f}" width="{width * part:.1f}" height="5" fill="#333"/>'
        f'<text x="{x:.1f}" y="{y - 4:.1f}" text-anchor="middle">{escape(label)}</text>'
        f'<text class="small" x="{x:.1f}" y="{y + 10:.1f}" text-anchor="middle">'
        f"{escape(box.told.splitlines()[0] if box.told else box.kind)}</text></g>"
    )


def _middle(place: tuple[float, int]) -> tuple[float, float]:
    return (place[0] + 0.5) * COLUMN, (place[1] + 0.5) * LAYER


def _foot(place: tuple[float, int]) -> tuple[float, float]:
    x, y = _middle(place)
    return x, y + BOX[1] / 2


def _head(place: tuple[float, int]) -> tuple[float, float]:
    x, y = _middle(place)
    return x, y - BOX[1] / 2


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """A smooth line through points, downwards at each."""
    parts = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (x, y), (u, v) in pairwise(points):
        half = (y + v) / 2
        parts.append(f"C{x:.1f},{half:.1f} {u:.1f},{half:.1f} {u:.1f},{v:.1f}")
    return " ".join(parts)
