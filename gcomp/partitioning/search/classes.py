"""Nodes that are cut alike: repeated layers are one, and are solved once.

Two nodes are of a class if they are the same op on the same types, and so are their neighbours up to some steps away.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import SSAValue

from gcomp.partitioning.search.problem import Edge, Node, Problem
from gcomp.partitioning.search.strategies import Strategy

Allowed = Callable[[Node, Strategy], bool]
"""Whether a node may choose so."""
STEPS = 4
"""How far neighbours count."""


@dataclass
class Alike:
    """Edges that are alike: the first, and the values that are taken along any of them."""

    edge: Edge
    values: set[SSAValue]


@dataclass
class Classes:
    """The class of each node, by number, and the edges between classes."""

    of: dict[Node, int]
    counts: list[int]
    first: list[Node]
    edges: dict[tuple[int, int, str], Alike]


def classes_of(problem: Problem, steps: int = STEPS, allowed: Allowed | None = None) -> Classes:
    """The classes of a problem's nodes; all of a class may choose the same."""
    around: dict[Node, list[tuple[str, Node]]] = defaultdict(list)
    for edge in problem.edges:
        around[edge.target].append((f"< {edge.label}", edge.source.node))
        around[edge.source.node].append((f"> {edge.label}", edge.target))
    colors = _numbered({n: (n.signature, allowed and tuple([allowed(n, c) for c in n.choices])) for n in problem.nodes})
    for _ in range(steps):
        colors = _numbered(
            {n: (colors[n], tuple(sorted((label, colors[m]) for label, m in around[n]))) for n in problem.nodes}
        )
    counts = Counter(colors.values())
    first: dict[int, Node] = {}
    for node in problem.nodes:
        first.setdefault(colors[node], node)
    edges: dict[tuple[int, int, str], Alike] = {}
    for edge in problem.edges:
        key = colors[edge.source.node], colors[edge.target], edge.label
        edges.setdefault(key, Alike(edge, set())).values.add(edge.value)
    return Classes(colors, [counts[c] for c in range(len(counts))], [first[c] for c in range(len(counts))], edges)


def _numbered(keys: dict[Node, object]) -> dict[Node, int]:
    numbers: dict[object, int] = {}
    return {node: numbers.setdefault(key, len(numbers)) for node, key in keys.items()}
