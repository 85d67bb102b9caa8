"""A layered drawing of a graph, after Sugiyama: layers by longest paths, few crossings, edges as straight as can be.

Equal graphs have equal drawings, so that equal compilations have equal pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SWEEPS = 8
"""How often the layers are gone through, down and up, to order them and to move them sideways."""

POINT = 0.2
"""The width of a point that an edge passes through, in columns; a node's is 1."""

Edge = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """The place of each node (x in columns, y in layers), and for each edge the places that it bends at."""

    places: list[tuple[float, int]]
    bends: dict[Edge, list[tuple[float, int]]]

    @property
    def width(self) -> float:
        """Columns from the leftmost node or bend to the rightmost."""
        xs = [x for x, _ in self.places] + [x for points in self.bends.values() for x, _ in points]
        return max(xs, default=0.0) + 1

    @property
    def height(self) -> int:
        """How many layers there are."""
        return max((y for _, y in self.places), default=-1) + 1


def lay_out(count: int, edges: Sequence[Edge]) -> Layout:
    """A layout of nodes `0 .. count - 1`, in an order in which every edge leads forward."""
    edges = list(dict.fromkeys(edges))
    layer = [0] * count
    for a, b in sorted(edges, key=lambda e: e[1]):
        layer[b] = max(layer[b], layer[a] + 1)
    # Edges that pass through layers have a point in each, as if it were a node; those of one node share them.
    points: dict[tuple[int, int], int] = {}
    chains: dict[Edge, list[int]] = {}
    short: dict[Edge, None] = {}
    for a, b in edges:
        chain: list[int] = []
        for at in range(layer[a] + 1, layer[b]):
            if (a, at) not in points:
                points[a, at] = len(layer)
                layer.append(at)
            chain.append(points[a, at])
        chains[a, b] = chain
        short |= dict.fromkeys(zip([a, *chain], [*chain, b], strict=True))
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for a, b in short:
        below[a].append(b)
        above[b].append(a)
    layers: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, at in enumerate(layer):
        layers[at].append(node)
    _order(layers, above, below)
    x = _columns(layers, above, below, [1.0 if node < count else POINT for node in range(len(layer))])
    least = min(x, default=0.0)
    places = [(x[n] - least, layer[n]) for n in range(len(layer))]
    return Layout(places[:count], {edge: [places[n] for n in chain] for edge, chain in chains.items()})


def _order(layers: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> None:
    """Order each layer by where its nodes' neighbours stand in the one before, down and up in turn."""
    rank = {node: float(i) for nodes in layers for i, node in enumerate(nodes)}
    for sweep in range(SWEEPS):
        near = below if sweep % 2 else above
        for nodes in layers[::-1] if sweep % 2 else layers:
            wanted = {n: _mean([rank[m] for m in near[n]], rank[n]) for n in nodes}
            nodes.sort(key=lambda n: (wanted[n], rank[n]))
            rank.update((n, float(i)) for i, n in enumerate(nodes))


def _columns(
    layers: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]], widths: Sequence[float]
) -> list[float]:
    """Columns in which the nodes of a layer do not overlap, near the mean of each node's neighbours."""
    x = [0.0] * len(above)
    for nodes in layers:
        _apart(nodes, [0.0] * len(nodes), widths, x)
    for sweep in range(SWEEPS):
        near = below if sweep % 2 else above
        for nodes in layers[::-1] if sweep % 2 else layers:
            _apart(nodes, [_mean([x[m] for m in near[n]], x[n]) for n in nodes], widths, x)
    return x


def _apart(nodes: Sequence[int], wanted: Sequence[float], widths: Sequence[float], x: list[float]) -> None:
    """Put the nodes of a layer as near as possible to where they want to be, in order and next to each other."""
    offsets: list[float] = []
    for i, node in enumerate(nodes):
        offsets.append(offsets[-1] + (widths[nodes[i - 1]] + widths[node]) / 2 if i else 0.0)
    runs: list[tuple[float, int]] = []  # the mean of wanted places less their offsets, and how many
    for place, offset in zip(wanted, offsets, strict=True):
        mean, size = place - offset, 1
        while runs and runs[-1][0] > mean:
            other, more = runs.pop()
            mean, size = (mean * size + other * more) / (size + more), size + more
        runs.append((mean, size))
    starts = [mean for mean, size in runs for _ in range(size)]
    for node, start, offset in zip(nodes, starts, offsets, strict=True):
        x[node] = start + offset


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


__all__ = ["Edge", "Layout", "lay_out"]
