"""Layered drawings: edges lead down, boxes do not overlap."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.report.drawing import COLUMN, LAYER, draw


@given(st.integers(0, 14), st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), max_size=34))
@settings(max_examples=200, deadline=None)
def test_edges_lead_down_layer_by_layer_and_nothing_overlaps(count: int, pairs: list[tuple[int, int]]) -> None:
    edges = [(a, b) for a, b in pairs if max(a, b) < count]
    drawing = draw(count, edges)
    assert drawing.bends.keys() == {(min(e), max(e)) for e in edges if e[0] != e[1]}
    for (a, b), points in drawing.bends.items():
        levels = [y / LAYER for _, y in (drawing.places[a], *points, drawing.places[b])]
        assert all(abs(v - u - 1) < 1e-6 for u, v in pairwise(levels))
    for (x, y), (u, v) in combinations(drawing.places, 2):
        assert abs(y - v) > 1e-6 or abs(x - u) >= COLUMN - 1e-6
    assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in drawing.places)


def test_a_chain_is_straight_and_a_skip_goes_past_it() -> None:
    drawing = draw(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert [y / LAYER for _, y in drawing.places] == [0.5, 1.5, 2.5, 3.5]
    assert drawing.places[1][0] == drawing.places[2][0]
    assert len(drawing.bends[0, 3]) == 2


def test_equal_graphs_have_equal_drawings_and_parts_stand_apart() -> None:
    """Two parts, of which the second has an edge past a layer: fast-sugiyama 0.5 took its point for another node."""
    edges = [(7, 13), (8, 12), (9, 13), (0, 12), (0, 7), (1, 8), (0, 1), (3, 11)]
    assert draw(14, edges) == draw(14, edges)
    assert len(draw(14, edges).bends[0, 12]) == 2
