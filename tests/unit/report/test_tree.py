"""Groups of a graph: every node is in one, none has too many children, and layers that are alike stand together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.report.tree import MOST, Group, tree_of

scopes = st.lists(st.lists(st.sampled_from("abc"), max_size=3).map(tuple), max_size=160)


@given(scopes, st.randoms())
@settings(max_examples=60, deadline=None)
def test_every_node_is_in_one_group_and_no_group_has_too_many_children(found, random) -> None:
    tokens = [random.choice("xyz") for _ in found]
    root = tree_of(found, tokens, "all")
    nodes = [child for group in root.groups() for child in group.children if isinstance(child, int)]
    assert sorted(nodes) == list(range(len(found)))
    for group in root.groups():
        assert len(group.children) <= MOST
        inner = [child for child in group.children if isinstance(child, Group)]
        assert all(child.parent is group for child in inner)
        assert group.count == sum(child.count for child in inner) + len(group.children) - len(inner)


def test_layers_of_one_shape_stand_in_one_group() -> None:
    layers = [("net", "layers", str(n), part) for n in range(4) for part in ("norm", "linear") for _ in range(2)]
    root = tree_of([("net", "embed"), ("net", "embed"), *layers, ("net",)], [*"ee", *"nnll" * 4, "o"], "all")
    titles = [group.title for group in root.groups()]
    assert "layers ×4" in titles
    alike = {group.shape for group in root.groups() if group.title in "0123"}
    assert len(alike) == 1


def test_layers_beside_something_else_are_folded_into_a_stack() -> None:
    scopes = [("block0",)] * 2 + [("block1",)] * 2 + [("block2",)] * 2 + [()]
    root = tree_of(scopes, list("abababc"), "all")
    assert [c.title if isinstance(c, Group) else c for c in root.children] == ["block0 … block2 ×3", 6]


def test_what_repeats_without_a_name_is_found() -> None:
    tokens = ["head", *(["dot", "add", "tanh", "mul", "norm"] * 40), "tail"]
    root = tree_of([()] * len(tokens), tokens, "all")
    first, repeated, last = root.children
    assert (first, last) == (0, len(tokens) - 1)
    assert isinstance(repeated, Group) and repeated.title == "repeated ×40"
    assert [child.count for child in repeated.children if isinstance(child, Group)] == [5] * 40
