"""Layouts: where the real elements are after reshapes, and which sizes never fall."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp import dims
from gcomp.dims import Ranges, Size, parse, parse_range, product
from gcomp.padding.layouts import Layout, Sizes, extent, length

SIZES = Sizes(["n", "m"], Ranges({"n": parse_range("1..9"), "m": parse_range("1..9"), "b": parse_range("1..4")}))
FACTORS = [parse(text) for text in ("n", "m", "b", "2", "3", "n + 1")]


def real(layout: Layout, env: dict[str, int]) -> np.ndarray:
    """Which elements are real, by the definition."""
    masks = [
        np.arange(dims.evaluate(f, env)) < dims.evaluate(SIZES.true(f), env) for factors in layout for f in factors
    ]
    grid = np.ones([], bool)
    for mask in masks:
        grid = np.logical_and.outer(grid, mask)
    return grid.reshape([dims.evaluate(extent(factors), env) for factors in layout])


def env_of(n: int, m: int) -> dict[str, int]:
    return {"n": n + 2, "m": m + 1, "b": 2, str(length("n")): n, str(length("m")): m}


@st.composite
def regrouped(draw: st.DrawFn) -> tuple[list[Size], list[Size], list[Size]]:
    """Sizes, and two shapes of as many elements, whose dimensions are products of neighbours."""
    sizes = draw(st.lists(st.sampled_from(FACTORS), min_size=1, max_size=4))
    shapes: list[list[Size]] = []
    for _ in range(2):
        shape: list[Size] = []
        for size in sizes:
            if shape and draw(st.booleans()):
                shape[-1] = shape[-1] * size
            else:
                shape.append(size)
        shapes.append(shape)
    return sizes, shapes[0], shapes[1]


@settings(max_examples=300, deadline=None)
@given(regrouped(), st.integers(0, 3), st.integers(0, 3))
def test_a_reshaped_layout_has_the_same_elements_in_order(
    shapes: tuple[list[Size], list[Size], list[Size]], n: int, m: int
) -> None:
    layout: Layout | None = SIZES.plain(shapes[0])
    for shape in shapes[1:]:
        assert layout is not None
        after = SIZES.reshaped(layout, shape)
        assert after is not None, "factors in order are merged and split again"
        env = env_of(n, m)
        assert np.array_equal(real(layout, env).reshape(-1), real(after, env).reshape(-1))
        assert all(SIZES.canonical(factors) == factors for factors in after)
        layout = after


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (["b", "n", "12"], ["b*n", "12"], [["b", "n"], ["12"]]),
        (["b", "n", "12"], ["b", "n", "3", "4"], [["b"], ["n"], ["3"], ["4"]]),
        (["b", "n", "12"], ["b", "12*n"], [["b"], ["12*n"]]),
        (["12*n"], ["n", "12"], [["n"], ["12"]]),
        (["12*n"], ["12", "n"], None),
        (["2", "n"], ["n", "2"], None),
        (["n", "m"], ["m", "n"], None),
        (["1", "n"], ["n", "1", "1"], [["n"], ["1"], ["1"]]),
    ],
)
def test_reshapes(old: list[str], new: list[str], expected: list[list[str]] | None) -> None:
    found = SIZES.reshaped(SIZES.plain([parse(s) for s in old]), [parse(s) for s in new])
    assert found == (None if expected is None else tuple(tuple(parse(f) for f in factors) for factors in expected))


@pytest.mark.parametrize(
    ("text", "grows"),
    [
        ("n", True), ("2*n + m", True), ("n*m", True), ("floordiv(n + 7, 8)", True), ("max(0, n - 3)", True),
        ("b - 3", True), ("min(n, 4)*m", True), ("8 - n", False), ("n - m", False), ("mod(n, 3)", False),
        ("n*(m - 1)", True), ("n - floordiv(n, 2)", True),
    ],
)  # fmt: skip
def test_sizes_that_never_fall(text: str, grows: bool) -> None:
    size = parse(text)
    assert SIZES.grows(size) == grows
    if grows:
        values = [[dims.evaluate(size, {"n": n, "m": m, "b": 2}) for n in range(1, 10)] for m in range(1, 10)]
        table = np.asarray(values)
        assert (np.diff(table, axis=0) >= 0).all()
        assert (np.diff(table, axis=1) >= 0).all()


def test_products_are_extents() -> None:
    assert extent((parse("n"), parse("3"))) == product([parse("n"), parse("3")])
