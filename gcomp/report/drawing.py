"""Layered drawings of graphs, by fast-sugiyama: places of boxes, and lines through the layers between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fast_sugiyama as _sugiyama

from gcomp.records import record

COLUMN, LAYER = 184.0, 66.0
"""Pixels from one column to the next, and from one layer to the next."""

POINT = 0.2
"""The width of a point that a line passes through, in columns; a box has 1."""

_library: Any = _sugiyama
Edge = tuple[int, int]
Point = tuple[float, float]
Name = int | tuple[int, int]
"""A node, or a point of a part of the graph."""


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
    wanted = dict.fromkeys((min(edge), max(edge)) for edge in edges if edge[0] != edge[1])
    # The library numbers points within each part by itself: our nodes are names there.
    named = [(f"n{a}", f"n{b}") for a, b in wanted]
    found: Any = []
    if named:
        found = _library.from_edges(
            named, minimum_length=1, vertex_spacing=1, dummy_vertices=True, dummy_size=POINT,
            crossing_minimization="barycenter",
        )  # fmt: skip
    at: dict[Name, Point] = {}
    following: dict[Name, list[Name]] = {}
    left = 0.0
    for part, (places, width, height, lines) in enumerate(found):

        def name(node: int | str, part: int = part) -> Name:
            return int(node[1:]) if isinstance(node, str) else (part, node)

        lowest = min(x for _, (x, _) in places)
        at.update({name(node): (left + x - lowest, height - y) for node, (x, y) in places})
        for a, b in lines or ():
            following.setdefault(name(a), []).append(name(b))
        left += width + 1
    for node in (node for node in range(count) if node not in at):  # it has no edges, and stands beside the others
        at[node] = (left, 0.0)
        left += 1
    pixels = {node: ((x + 0.5) * COLUMN, (y + 0.5) * LAYER) for node, (x, y) in at.items()}
    return Drawing(
        tuple([pixels[node] for node in range(count)]),
        {(a, b): tuple([pixels[point] for point in _points(a, b, following)]) for a, b in wanted},
        (max((x for x, _ in at.values()), default=0.0) + 1) * COLUMN,
        (max((y for _, y in at.values()), default=0.0) + 1) * LAYER,
    )


def _points(a: int, b: int, following: dict[Name, list[Name]]) -> list[Name]:
    """The points between two nodes; each point has one line on."""
    for first in following.get(a, ()):
        points, node = list[Name](), first
        while isinstance(node, tuple):
            points.append(node)
            (node,) = following[node]
        if node == b:
            return points
    return []


__all__ = ["COLUMN", "LAYER", "Drawing", "draw"]
