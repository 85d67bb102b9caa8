"""Laws of rematerialization: what runs again may, values stay what they are, and the peak is what is said."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.memory.graph import Graph, Node, peak_of
from gcomp.memory.rematerialize import Work, rematerialize
from tests.property.test_memory_ordering import graphs, simulated


def meanings(graph: Graph) -> dict[int, Any]:
    """What each value is: an input, or the node that makes it with what that reads."""
    found: dict[int, Any] = {value: value for value in graph.inputs | graph.donated}
    for node in graph.nodes:
        read = tuple(found[value] for value in node.inputs)
        found.update((value, (node.name, graph.sizes[value], read)) for value in node.outputs)
    return found


@given(graphs(most=10), st.integers(0, 40), st.lists(st.sampled_from((None, 0.0, 1.0, 5.0)), min_size=10, max_size=10))
@settings(max_examples=300, deadline=None)
def test_values_stay_what_they_are_and_the_peak_is_as_simulated(
    graph: Graph, budget: int, seconds: list[float | None]
) -> None:
    result = rematerialize(graph, seconds[: len(graph.nodes)], budget)
    work, again = Work(graph, seconds[: len(graph.nodes)]), 0.0
    for step in result.steps:
        assert all(work.seconds[i] is not None for i in step.nodes)
        assert all(i < step.before for i in step.nodes)
        again += work.time(step.nodes)
        work = work.then(step)
    after = work.graph
    assert result.given_peak == peak_of(graph, range(len(graph.nodes))) or not graph.nodes
    assert not after.nodes or result.peak == simulated(after, range(len(after.nodes)))
    assert result.peak <= result.given_peak
    assert result.seconds == again
    before, now = meanings(graph), meanings(after)
    assert [(n.name, [now[v] for v in n.inputs]) for n in after.nodes if set(n.outputs) & set(before)] == [
        (n.name, [before[v] for v in n.inputs]) for n in graph.nodes if set(n.outputs) & set(before)
    ]
    assert {now[v] == before[v] for v in graph.kept} <= {True}


@given(graphs(most=10))
@settings(max_examples=50, deadline=None)
def test_nothing_is_done_within_the_budget_or_where_nothing_may_run_again(graph: Graph) -> None:
    peak = peak_of(graph, range(len(graph.nodes)))
    assert rematerialize(graph, [1.0] * len(graph.nodes), peak).steps == ()
    assert rematerialize(graph, [None] * len(graph.nodes), 0).steps == ()


def training_step(layers: int) -> Graph:
    """Layers one after the other, and back through all of their results."""
    there = [Node(f"layer {i}", (i,), (i + 1,)) for i in range(layers)]
    loss = Node("loss", (layers,), (layers + 1,))
    back = [Node(f"back {i}", (layers - i, layers + i + 1), (layers + i + 2,)) for i in range(layers)]
    sizes = dict.fromkeys(range(2 * layers + 2), 100)
    return Graph((*there, loss, *back), sizes, inputs=frozenset({0}), outputs=frozenset({2 * layers + 1}))


def test_a_training_step_fits_half_of_its_peak_for_less_than_running_all_of_it_again() -> None:
    graph = training_step(25)
    given = peak_of(graph, range(len(graph.nodes)))
    result = rematerialize(graph, [1.0] * len(graph.nodes), given // 2)
    assert result.peak <= given // 2
    assert result.seconds <= 25.0
    assert result.seconds == sum(len(step.nodes) for step in result.steps)
