"""Laws of orders: possible, never worse than the given one, and the lowest peak where that is claimed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.memory.downsets import Cell, best_order
from gcomp.memory.graph import Graph, Node, bytes_while, first_too_early, peak_of
from gcomp.memory.ordering import cells, least_bytes, order
from gcomp.memory.schedules import SCHEDULES


@st.composite
def graphs(draw: st.DrawFn, most: int = 7) -> Graph:
    """Nodes that read what is there and make up to two values; some reuse, some wait without a value."""
    inputs, donated = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    sizes = {value: draw(st.integers(0, 9)) for value in range(inputs + donated)}
    nodes: list[Node] = []
    edges: list[tuple[int, int]] = []
    for index in range(draw(st.integers(0, most))):
        read = draw(st.lists(st.sampled_from(sorted(sizes)), max_size=3)) if sizes else []
        made = list(range(len(sizes), len(sizes) + draw(st.integers(0, 2))))
        sizes |= {value: draw(st.integers(0, 9)) for value in made}
        pairs = [(output, value) for output in made for value in dict.fromkeys(read)]
        reuses = draw(st.lists(st.sampled_from(pairs), max_size=3)) if pairs else []
        workspace = draw(st.sampled_from((0, 0, 2, 15)))
        nodes.append(Node(f"n{index}", tuple(read), tuple(made), workspace, tuple(reuses)))
        if index and draw(st.integers(0, 4)) == 0:
            edges.append((draw(st.integers(0, index - 1)), index))
    kept = draw(st.sets(st.sampled_from(sorted(sizes)), max_size=2)) if sizes else set[int]()
    first, second = frozenset(range(inputs)), frozenset(range(inputs, inputs + donated))
    return Graph(tuple(nodes), sizes, first, second, frozenset(kept), tuple(edges))


def orders(graph: Graph, done: Sequence[int] = ()) -> Iterator[list[int]]:
    """Every order that is possible."""
    if len(done) == len(graph.nodes):
        yield list(done)
    for index in range(len(graph.nodes)):
        if index not in done and all(before in done for before in graph.before[index]):
            yield from orders(graph, [*done, index])


def simulated(graph: Graph, sequence: Sequence[int]) -> int:
    """The peak, from the definition: at each node, which values must be there."""
    peak = sum(graph.sizes[value] for value in graph.kept) if not graph.nodes else 0
    made = set(graph.inputs | graph.donated)
    for at, index in enumerate(sequence):
        node = graph.nodes[index]
        later = {value for other in sequence[at + 1 :] for value in graph.nodes[other].inputs} | graph.kept
        there = {value for value in made if value in later or value in node.inputs}
        free, saved = {value for value in node.inputs if value not in later}, set[int]()
        for output, value in node.reuses:
            if value in free and output not in saved and graph.sizes[output] <= graph.sizes[value]:
                free.remove(value)
                saved.add(output)
        there |= set(node.outputs) - saved
        peak = max(peak, sum(graph.sizes[value] for value in there) + node.workspace)
        made |= set(node.outputs)
    return peak


@given(graphs(most=10))
@settings(max_examples=150, deadline=None)
def test_orders_are_possible_and_never_worse(graph: Graph) -> None:
    result = order(graph, seconds=1)
    assert sorted(result.sequence) == list(range(len(graph.nodes)))
    assert first_too_early(graph, result.sequence) is None
    assert result.peak == simulated(graph, result.sequence) <= result.given_peak
    assert result.given_peak == simulated(graph, range(len(graph.nodes)))
    assert least_bytes(graph) <= result.lower_bound <= result.peak
    assert order(graph, seconds=1).sequence == result.sequence


@given(graphs(most=10), st.data())
@settings(max_examples=100, deadline=None)
def test_schedules_are_possible_and_peaks_are_as_simulated(graph: Graph, data: st.DataObject) -> None:
    for schedule in SCHEDULES.values():
        sequence = schedule(graph)
        assert peak_of(graph, sequence) == simulated(graph, sequence)


@given(graphs(most=6))
@settings(max_examples=150, deadline=None)
def test_small_graphs_are_ordered_as_well_as_possible(graph: Graph) -> None:
    """Against every order of up to six nodes."""
    result = order(graph, seconds=5)
    assert result.peak == result.lower_bound == min(simulated(graph, sequence) for sequence in orders(graph))


@given(graphs(most=6))
@settings(max_examples=150, deadline=None)
def test_the_exact_program_alone_finds_the_optimum(graph: Graph) -> None:
    """Over the whole graph as one cell, from no known order."""
    if not graph.nodes:
        return
    result = best_order(Cell(graph, range(len(graph.nodes)), ()), 10**9, 10**6, float("inf"))
    assert result.exact and result.order is not None
    assert result.peak == simulated(graph, result.order) == min(simulated(graph, other) for other in orders(graph))


@given(graphs(most=6))
@settings(max_examples=100, deadline=None)
def test_cells_hold_the_same_nodes_in_every_order(graph: Graph) -> None:
    ranges = cells(graph)
    assert [p for start, stop in ranges for p in range(start, stop)] == list(range(len(graph.nodes)))
    for sequence in orders(graph):
        for start, stop in ranges:
            assert sorted(sequence[start:stop]) == list(range(start, stop))


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
