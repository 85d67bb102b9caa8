"""Laws of orders (`gcomp.testing.fuzz.packings`), drawn by Hypothesis, and instances of their own."""

from __future__ import annotations

import pytest

from gcomp.memory.downsets import Cell, best_order
from gcomp.memory.graph import Graph, Node, bytes_while
from gcomp.memory.ordering import order
from gcomp.testing.fuzz.packings import LAWS
from tests.property.laws import holds

ABOUT = ("ordering", "schedules", "graph")


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.about in ABOUT])
def test_a_law_of_orders_holds(name: str) -> None:
    holds(LAWS[name])


def test_what_frees_bytes_runs_before_what_needs_many() -> None:
    """A node that adds no bytes is not free to run while its workspace raises the peak."""
    graph = Graph((Node("works", workspace=10), Node("frees", (0,))), {0: 8}, donated=frozenset({0}))
    result = best_order(Cell(graph, [0, 1], ()), 10**9, 10**6, float("inf"))
    assert (result.order, result.peak) == ([1, 0], 10)


def test_a_wide_graph_is_reduced_before_it_grows() -> None:
    """Large tensors that are each reduced at once: the given order makes them all first."""
    count = 40
    makers = [Node(f"make{i}", (0,), (1 + 2 * i,)) for i in range(count)]
    sums = [Node(f"sum{i}", (1 + 2 * i,), (2 + 2 * i,)) for i in range(count)]
    last = Node("last", tuple(2 + 2 * i for i in range(count)), (1000,))
    sizes = {0: 1, 1000: 1} | {1 + 2 * i: 100 for i in range(count)} | {2 + 2 * i: 1 for i in range(count)}
    graph = Graph((*makers, *sums, last), sizes, frozenset({0}), outputs=frozenset({1000}))
    result = order(graph)
    assert result.given_peak > 4000
    assert result.peak == 1 + (count - 1) + 100 + 1
    assert max(bytes_while(graph, result.sequence)) == result.peak
