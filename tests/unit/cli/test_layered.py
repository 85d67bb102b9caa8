"""Layered drawings: edges lead down, boxes do not overlap."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.cli.layered import POINT, draw


@given(st.integers(0, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
@settings(max_examples=200, deadline=None)
def test_edges_lead_down_layer_by_layer_and_nothing_overlaps(count: int, pairs: list[tuple[int, int]]) -> None:
    edges = [(min(p), max(p)) for p in pairs if min(p) < max(p) < count]
    drawing = draw(count, edges)
    for a, b in edges:
        levels = [drawing.places[a][1], *(y for _, y in drawing.bends[a, b]), drawing.places[b][1]]
        assert levels == list(range(levels[0], levels[-1] + 1))
    for (x, y), (u, v) in combinations(drawing.places, 2):
        assert y != v or abs(x - u) >= 1 - 1e-9
    for points in drawing.bends.values():
        assert all(abs(x - u) >= (1 + POINT) / 2 - 1e-9 for x, y in points for u, v in drawing.places if y == v)
    assert all(0 <= x < drawing.width - 1 + 1e-9 and 0 <= y < drawing.height for x, y in drawing.places)


def test_a_chain_is_straight_and_a_skip_goes_past_it() -> None:
    drawing = draw(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert [y for _, y in drawing.places] == [0, 1, 2, 3]
    assert drawing.places[1][0] == drawing.places[2][0]
    assert len(drawing.bends[0, 3]) == 2
