"""Pads that data determine: as NumPy pads, in every mode, with negative pads that crop."""

from __future__ import annotations

import numpy as np
import pytest

import gcomp
from gcomp.errors import GcompError, InputError
from gcomp.reference.interpreter import interpret
from tests.unit.onnx.graphs import imported, model, numbers

MODES = ("constant", "edge", "reflect", "wrap")
GRAPH = '(float[2, n] x, int64[4] pads) => (float[a, b] y) {{ y = Pad <mode = "{}"> (x, pads) }}'
PADS = (
    (0, 0, 0, 0),
    (0, 2, 0, 3),
    (1, 0, 0, 1),
    (0, 7, 1, 9),
    (0, -1, 0, 2),
    (0, 2, 0, -2),
    (0, -1, 0, -1),
    (0, -3, 0, 5),
)


@pytest.mark.parametrize("mode", MODES)
def test_data_dependent_pads(mode: str) -> None:
    program, compiled = imported(GRAPH.format(mode)), gcomp.compile(model(GRAPH.format(mode)))
    for n in (4, 5):
        for pads in PADS:
            x, (top, left, bottom, right) = numbers(2, n), pads
            cut = x[:, max(-left, 0) : n - max(-right, 0)]
            widths = ((top, bottom), (max(left, 0), max(right, 0)))
            want = np.pad(cut, widths, mode)  # pyright: ignore
            for run in (lambda *v: interpret(program, list(v)), compiled):
                (got,) = run(x, np.asarray(pads, np.int64))
                assert np.array_equal(np.asarray(got), want), (n, pads)


def test_pads_of_some_axes_of_which_some_are_known() -> None:
    graph = """(float[2, n] x, int64[1] k) => (float[2, m] y) <int64[1] one = {1}, int64[1] axes = {-1}>
        { pads = Concat <axis = 0> (one, k)  y = Pad <mode = "edge"> (x, pads, , axes) }"""
    program = imported(graph)
    for k in (0, 3, -2):
        (got,) = interpret(program, [numbers(2, 4), np.asarray([k], np.int64)])
        want = np.pad(numbers(2, 4)[:, : 4 + min(k, 0)], ((0, 0), (1, max(k, 0))), "edge")
        assert np.array_equal(got, want)


AXES = "(float[2, n] x, int64[{0}] pads, int64[{1}] axes) => (float[a, b] y) {{ y = Pad (x, pads, , axes) }}"


def test_axes_from_data() -> None:
    one, two = imported(AXES.format(2, 1)), imported(AXES.format(4, 2))
    x = numbers(2, 4)
    for axis in (0, 1, -1, -2):
        (got,) = interpret(one, [x, np.asarray([1, 2], np.int64), np.asarray([axis], np.int64)])
        assert np.array_equal(got, np.pad(x, [(1, 2) if i == axis % 2 else (0, 0) for i in range(2)]))
    (got,) = interpret(two, [x, np.asarray([1, 2, 3, 4], np.int64), np.asarray([-1, 0], np.int64)])
    assert np.array_equal(got, np.pad(x, [(2, 4), (1, 3)]))


@pytest.mark.parametrize("axes", [(0, 0), (0, 2), (-3, 1), (1, -1)])
def test_axes_from_data_that_are_none(axes: tuple[int, int]) -> None:
    program = imported(AXES.format(4, 2))
    with pytest.raises(InputError):
        interpret(program, [numbers(2, 4), np.zeros(4, np.int64), np.asarray(axes, np.int64)])


@pytest.mark.parametrize("mode", MODES)
def test_more_cropped_than_there_is(mode: str) -> None:
    compiled = gcomp.compile(model(GRAPH.format(mode)))
    with pytest.raises(InputError):
        compiled(numbers(2, 4), np.asarray([0, -3, 0, -3], np.int64))


def test_a_list_is_expected() -> None:
    with pytest.raises(GcompError, match="rank"):
        imported("(float[2, n] x, int64[2, 2] pads) => (float[a, b] y) { y = Pad (x, pads) }")
