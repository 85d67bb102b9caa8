"""Laws of rematerialization (`gcomp.testing.fuzz.packings`), drawn by Hypothesis, and a training step."""

from __future__ import annotations

import pytest

from gcomp.memory.graph import Graph, Node, peak_of
from gcomp.memory.rematerialize import rematerialize
from gcomp.testing.fuzz.packings import LAWS
from tests.property.laws import holds


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.about == "rematerialize"])
def test_a_law_of_rematerialization_holds(name: str) -> None:
    holds(LAWS[name])


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
