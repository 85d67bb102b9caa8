"""Slices whose axes and steps are data: as ONNX Runtime slices."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnxruntime
import pytest

import gcomp
from gcomp.errors import GcompError, InputError
from gcomp.reference.interpreter import interpret
from tests.unit.onnx.graphs import imported, model, numbers

GRAPH = """(float[n, 5, 2] x, int64[{k}] s, int64[{k}] e, int64[{k}] a, int64[{k}] p) => (float[b, c, d] y)
    {{ y = Slice (x, s, e, a, p) }}"""
BOUNDS = (-(2**63), -9, -5, -2, -1, 0, 1, 3, 5, 9, 2**63 - 1)


def _ints(*values: int) -> Any:
    return np.asarray(values, np.int64)


def test_one_axis() -> None:
    program = imported(GRAPH.format(k=1))
    session = onnxruntime.InferenceSession(model(GRAPH.format(k=1)).SerializeToString())
    x, rng = numbers(4, 5, 2), np.random.default_rng(0)
    for start, end in product(BOUNDS, BOUNDS):
        axis, step = int(rng.integers(-3, 3)), int(rng.choice([-7, -3, -2, -1, 1, 2, 3, 2**62, -(2**62)]))
        feed = {"x": x, "s": _ints(start), "e": _ints(end), "a": _ints(axis), "p": _ints(step)}
        (got,) = interpret(program, list(feed.values()))
        if step > 0 or end != 2**63 - 1:  # there ONNX Runtime takes the greatest end to mean "before the first"
            assert np.array_equal(got, session.run(None, feed)[0]), (start, end, axis, step)
        fixed = imported(GRAPH.format(k=1), constants={name: feed[name] for name in "seap"}, dims={"n": 4})
        assert np.array_equal(got, interpret(fixed, [x])[0]), (start, end, axis, step)


def test_two_axes() -> None:
    graph = GRAPH.format(k=2)
    program, compiled = imported(graph), gcomp.compile(model(graph))
    session = onnxruntime.InferenceSession(model(graph).SerializeToString())
    x = numbers(4, 5, 2)
    for s, e, a, p in (
        ((0, 1), (3, 9), (0, 1), (1, 2)),
        ((-1, 4), (-9, 0), (2, 1), (-1, -2)),
        ((5, 0), (9, 0), (1, 0), (1, 1)),
    ):
        feed = {"x": x, "s": _ints(*s), "e": _ints(*e), "a": _ints(*a), "p": _ints(*p)}
        (want,) = session.run(None, feed)
        for run in (lambda *v: interpret(program, list(v)), compiled):
            assert np.array_equal(np.asarray(run(*feed.values())[0]), want)


def test_steps_alone() -> None:
    graph = """(float[n, 5] x, int64[2] p) => (float[b, c] y) <int64[2] s = {1, -1}, int64[2] e = {9, -9}>
        { y = Slice (x, s, e, , p) }"""
    (got,) = interpret(imported(graph), [numbers(4, 5), _ints(2, -3)])
    assert np.array_equal(got, numbers(4, 5)[1:9:2, -1:-9:-3])


@pytest.mark.parametrize(("axes", "steps"), [((0, 0), (1, 1)), ((0, 3), (1, 1)), ((0, 1), (1, 0))])
def test_what_is_refused_when_it_runs(axes: tuple[int, int], steps: tuple[int, int]) -> None:
    program = imported(GRAPH.format(k=2))
    with pytest.raises(InputError, match="lengths"):
        interpret(program, [numbers(4, 5, 2), _ints(0, 0), _ints(2, 2), _ints(*axes), _ints(*steps)])


def test_lists_of_different_lengths() -> None:
    with pytest.raises(GcompError, match="fit together"):
        imported("(float[n, 5] x, int64[2] s, int64[2] e, int64[1] a) => (float[b, c] y) { y = Slice (x, s, e, a) }")
