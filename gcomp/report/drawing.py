"""Layered drawings of graphs in pixels: places of boxes, and lines through the layers between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gcomp.records import record
from gcomp.report.layered import Edge, lay_out

COLUMN, LAYER = 184.0, 66.0
"""Pixels from one column to the next, and from one layer to the next."""

Point = tuple[float, float]


@record
class Drawing:
    """The middle of each box in pixels, and for each edge the points that it bends at."""

    places: tuple[Point, ...]
    bends: dict[Edge, tuple[Point, ...]]
    width: float
    height: float

    def to_json(self) -> dict[str, Any]:
        """As the page's script reads it, in whole pixels."""
        return {
            "w": round(self.width), "h": round(self.height), "p": [[round(x), round(y)] for x, y in self.places],
            "e": [[a, b, [round(v) for point in points for v in point]] for (a, b), points in self.bends.items()],
        }  # fmt: skip


def draw(count: int, edges: Sequence[Edge]) -> Drawing:
    """A drawing of nodes `0 .. count - 1`, each edge downwards: numbers say the order where edges go in a circle."""
    found = lay_out(count, list(dict.fromkeys((min(edge), max(edge)) for edge in edges if edge[0] != edge[1])))
    return Drawing(
        tuple(map(_pixels, found.places)),
        {edge: tuple(map(_pixels, points)) for edge, points in found.bends.items()},
        found.width * COLUMN,
        found.height * LAYER,
    )


def _pixels(place: tuple[float, int]) -> Point:
    return (place[0] + 0.5) * COLUMN, (place[1] + 0.5) * LAYER


__all__ = ["COLUMN", "LAYER", "Drawing", "draw"]
