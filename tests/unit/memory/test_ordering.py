"""Orders: graphs that are none are refused, and large ones take seconds."""

from __future__ import annotations

from typing import Any

import pytest

from gcomp.errors import UsageError
from gcomp.memory.graph import Graph, Node, bytes_while, peak_of
from gcomp.memory.ordering import order

A, B = Node("a", (0,), (1,)), Node("b", (1,), (2,))
SIZES = {0: 4, 1: 4, 2: 4}

REFUSED: dict[str, tuple[tuple[Node, ...], dict[str, Any], str]] = {
    "an order that is not possible": ((B, A), {}, "'b'"),
    "a cycle of edges": ((A, B), {"must_follow": ((1, 0),)}, "'a'"),
    "two sources": ((A, Node("c", (), (1,))), {}, "Value 1 has 2 sources"),
    "no source": ((Node("c", (7,), ()),), {}, "Value 7 is used, and nothing makes it"),
    "no size": ((Node("c", (), (7,)),), {}, "Value 7 has no size"),
    "an output that nothing makes": ((A,), {"outputs": frozenset({2})}, "Value 2 is used"),
    "a negative workspace": ((Node("c", workspace=-1),), {}, "'c'"),
    "reuse of what is not read": ((Node("c", (), (1,), reuses=((1, 0),)),), {}, "'c'"),
    "an edge to nowhere": ((A,), {"must_follow": ((0, 5),)}, "nodes that do not exist"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_graphs_that_are_none_are_refused(case: str) -> None:
    nodes, more, message = REFUSED[case]
    with pytest.raises(UsageError) as caught:
        Graph(nodes, SIZES, frozenset({0}), **more)
    assert message in str(caught.value)


def test_a_sequence_that_is_not_possible_has_no_peak() -> None:
    graph = Graph((A, B), SIZES, frozenset({0}))
    for sequence in ([1, 0], [0], [0, 0], [0, 1, 2]):
        with pytest.raises(UsageError, match="no order"):
            peak_of(graph, sequence)
    assert bytes_while(graph, [0, 1]) == [8, 12]


def test_an_output_that_reuses_its_input_takes_no_bytes() -> None:
    """Only where the input dies, and only if it is large enough."""
    chain = (A, Node("b", (1,), (2,), reuses=((2, 1),)))
    assert peak_of(Graph(chain, SIZES, frozenset({0})), [0, 1]) == 8
    assert peak_of(Graph(chain, SIZES, frozenset({0}), outputs=frozenset({1})), [0, 1]) == 12
    assert peak_of(Graph(chain, SIZES | {2: 5}, frozenset({0})), [0, 1]) == 13


def test_donated_inputs_die_after_their_last_use() -> None:
    assert peak_of(Graph((A, B), SIZES, donated=frozenset({0})), [0, 1]) == 8


def test_no_nodes() -> None:
    result = order(Graph((), SIZES, frozenset({0})))
    assert (result.sequence, result.peak, result.optimal) == ((), 4, True)


def test_an_unknown_budget_is_refused() -> None:
    with pytest.raises(UsageError, match="not at least zero"):
        order(Graph((A, B), SIZES, frozenset({0})), seconds=float("nan"))


def test_diamonds_in_a_chain_are_proven_cell_by_cell() -> None:
    """Two branches between one value and the next: the one that is large in between goes first, in every cell."""
    nodes: list[Node] = []
    sizes = {0: 1}
    for i in range(50):
        at, v = 0 if i == 0 else 10 * i, 10 * (i + 1)
        sizes |= {v + 1: 3, v + 2: 9, v + 3: 1, v: 1}
        nodes += [Node(f"small{i}", (at,), (v + 1,)), Node(f"large{i}", (at,), (v + 2,))]
        nodes += [Node(f"shrink{i}", (v + 2,), (v + 3,)), Node(f"join{i}", (v + 1, v + 3), (v,))]
    result = order(Graph(tuple(nodes), sizes, donated=frozenset({0})))
    assert (result.given_peak, result.peak, result.lower_bound) == (13, 11, 11)
