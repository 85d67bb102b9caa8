"""What nodes read lies within their operands at every size: calls of other sizes are refused, with the node's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import InputError
from gcomp.reference.interpreter import interpret
from tests.unit.onnx.graphs import imported, model, numbers

Array = np.ndarray[Any, Any]


def padded(before: int, after: int, mode: Any) -> Callable[[Array], Array]:
    def expected(x: Array) -> Array:
        if mode == "edge" and not len(x):
            raise IndexError("there is nothing to repeat")
        return np.pad(x, (before, after), mode)

    return expected


GRAPHS: dict[str, tuple[str, Callable[[Array], Any]]] = {
    "one element": ("(float[n] x) => (float[1] y) <int64[1] i = {3}> { y = Gather(x, i) }", lambda x: x[[3]]),
    "the last but one": ("(float[n] x) => (float[1] y) <int64[1] i = {-2}> { y = Gather(x, i) }", lambda x: x[[-2]]),
    "elements": ("(float[n] x) => (float[2] y) <int64[2] i = {2, 0}> { y = Gather(x, i) }", lambda x: x[[2, 0]]),
    "elements in place": (
        "(float[n] x) => (float[2] y) <int64[2] i = {1, -3}> { y = GatherElements(x, i) }", lambda x: x[[1, -3]]
    ),
    "slices": ("(float[n] x) => (float[2] y) <int64[2, 1] i = {1, 2}> { y = GatherND(x, i) }", lambda x: x[[1, 2]]),
    "the greatest": ("(float[n] x) => (int64[1] y) { y = ArgMax(x) }", lambda x: np.argmax(x, keepdims=True)),
    "edges": (
        '(float[n] x) => (float[m] y) <int64[2] p = {1, 2}> { y = Pad <mode = "edge"> (x, p) }', padded(1, 2, "edge")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_what_there_is_is_read_and_nothing_else(name: str) -> None:
    graph, wanted = GRAPHS[name]
    runs = (gcomp.compile(model(graph), target="cpu"), lambda x: interpret(imported(graph), [x]))
    for n in range(5):
        x = numbers(n) if n else np.zeros(0, np.float32)
        try:
            expected = wanted(x)
        except (IndexError, ValueError):
            for run in runs:
                with pytest.raises(InputError, match="must be at most"):
                    run(x)
            continue
        for run in runs:
            assert np.array_equal(np.asarray(run(x)[0]), expected), n


def test_data_choose_only_among_what_there_is() -> None:
    graph = "(float[n] x, int64[m] i) => (float[m] y) { y = Gather(x, i) }"
    compiled, nothing = gcomp.compile(model(graph), target="cpu"), np.zeros(0, np.float32)
    assert np.asarray(compiled(nothing, np.zeros(0, np.int64))[0]).shape == (0,)
    with pytest.raises(InputError, match="node `Gather:y`"):
        compiled(nothing, np.zeros(2, np.int64))


CROPS = [(-3, 0), (0, -3), (-1, -2), (-2, 1), (-4, 1), (-3, 2), (2, -3)]


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_crops_leave_nothing_to_repeat(mode: Any) -> None:
    graph = f'(float[n] x, int64[2] p) => (float[m] y) {{ y = Pad <mode = "{mode}"> (x, p) }}'
    compiled, x = gcomp.compile(model(graph), target="cpu"), numbers(3)
    for before, after in CROPS:
        pads = np.array([before, after], np.int64)
        kept = 3 + min(before, 0) + min(after, 0)
        if kept < 0 or (kept == 0 and max(before, after) > 0):
            with pytest.raises(InputError, match="node `Pad:y`"):
                compiled(x, pads)
            continue
        cut = x[max(-before, 0) : max(-before, 0) + kept]
        expected = np.pad(cut, (max(before, 0), max(after, 0)), mode) if kept else cut
        assert np.array_equal(np.asarray(compiled(x, pads)[0]), expected), (before, after)


def test_what_no_node_forbids_may_be_empty() -> None:
    graph = "(float[n, k] x, float[k, 3] w) => (float[n, 3] y) { y = MatMul(x, w) }"
    compiled = gcomp.compile(model(graph), target="cpu")
    for n, k in ((0, 0), (0, 2), (2, 0), (2, 2)):
        x, w = np.ones((n, k), np.float32), np.ones((k, 3), np.float32)
        assert np.array_equal(np.asarray(compiled(x, w)[0]), x @ w)
