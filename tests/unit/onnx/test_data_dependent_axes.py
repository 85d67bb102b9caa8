"""Axes that data determine: the same results as with the axes as constants, and refusals of what are no axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import GcompError, InputError, UnsupportedError
from gcomp.frontends.onnx.operators.reduction import REDUCTIONS
from gcomp.reference.interpreter import interpret
from tests.support.thinning import swept
from tests.unit.onnx.graphs import imported, model, numbers


def _axes(*values: int) -> Any:
    return np.asarray(values, np.int64)


def _compare(graph: str, x: Any, axes: Sequence[Any], compiled: bool = False) -> None:
    """With the axes as data, and fixed."""
    program, ready = imported(graph), gcomp.compile(model(graph)) if compiled else None
    for given in axes:
        want = interpret(imported(graph, constants={"axes": given}), [x])[0]
        for got in [interpret(program, [x, given])[0]] + ([np.asarray(ready(x, given)[0])] if ready else []):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=16 * np.finfo(np.float32).eps, atol=1e-6)


CHOICES = [_axes(0), _axes(-1)], [_axes(1, -3), _axes(2, 0), _axes(-1, -2)], [_axes(2, 0, 1)]


@pytest.mark.parametrize("keepdims", [0, *swept(1)])
@pytest.mark.parametrize("operator", REDUCTIONS)
def test_reductions(operator: str, keepdims: int) -> None:
    for count, axes in enumerate(CHOICES, start=1):
        shape = ", ".join("bcd"[: 3 if keepdims else 3 - count])
        graph = f"""(float[a, 3, 4] x, int64[{count}] axes) => (float[{shape}] y)
            {{ y = {operator} <keepdims = {keepdims}> (x, axes) }}"""
        _compare(graph, np.abs(numbers(2, 3, 4)) + 1, axes, compiled=operator == "ReduceLogSumExp" and count == 2)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions_of_nothing(keepdims: int) -> None:
    graph = f"(float[2, 0, 4] x, int64[1] axes) => (float[{'a, b, c' if keepdims else 'a, b'}] y)"
    graph += f"{{ y = ReduceSum <keepdims = {keepdims}> (x, axes) }}"
    _compare(graph, np.zeros((2, 0, 4), np.float32), [_axes(0), _axes(1), _axes(2)], compiled=True)


@pytest.mark.parametrize(("noop", "shape"), [(0, ()), (1, (2, 3))])
def test_no_axes_are_no_matter_of_data(noop: int, shape: tuple[int, ...]) -> None:
    graph = f"(float[2, 3] x, int64[0] axes) => (float[{', '.join('ab'[: len(shape)])}] y)"
    graph += f"{{ y = ReduceSum <keepdims = 0, noop_with_empty_axes = {noop}> (x, axes) }}"
    (got,) = interpret(imported(graph), [numbers(2, 3), np.zeros(0, np.int64)])
    assert np.array_equal(got, numbers(2, 3) if noop else numbers(2, 3).sum())


@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
@pytest.mark.parametrize("flags", ["exclusive = 0", "exclusive = 1, reverse = 1"])
def test_running_sums(operator: str, flags: str) -> None:
    opset = 26 if operator == "CumProd" else 20
    graph = f"(float[n, 3] x, int64 axes) => (float[n, 3] y) {{ y = {operator} <{flags}> (x, axes) }}"
    program, compiled = imported(graph, opset), gcomp.compile(model(graph, opset))
    for axis in (0, 1, -1, -2):
        (want,) = interpret(imported(graph, opset, constants={"axes": np.int64(axis)[()]}), [numbers(4, 3)])
        for run in (lambda *v: interpret(program, list(v)), compiled):
            (got,) = run(numbers(4, 3), np.asarray(axis, np.int64))
            assert np.array_equal(np.asarray(got), want)


def test_unsqueeze() -> None:
    for count in (1, 2, 3):
        graph = f"(float[n, 3] x, int64[{count}] axes) => (float[{', '.join('abcde'[: 2 + count])}] y)"
        graph += "{ y = Unsqueeze (x, axes) }"
        chosen = [_axes(*axes) for axes in permutations(range(2 + count), count)][:8]
        _compare(graph, numbers(2, 3), [*chosen, _axes(*range(-count, 0))], compiled=count == 2)
    _compare("(float x, int64[1] axes) => (float[a] y) { y = Unsqueeze (x, axes) }", np.float32(3), [_axes(0)])


def test_squeeze() -> None:
    graph = "(float[n, 1, 3, 1] x, int64[1] axes) => (float[a, b, c] y) { y = Squeeze (x, axes) }"
    _compare(graph, numbers(2, 1, 3, 1), [_axes(1), _axes(3), _axes(-1), _axes(-3)], compiled=True)
    graph = "(float[n, 1, 3, 1] x, int64[2] axes) => (float[a, b] y) { y = Squeeze (x, axes) }"
    _compare(graph, numbers(2, 1, 3, 1), [_axes(1, 3), _axes(-1, 1)])


@pytest.mark.parametrize(
    ("node", "axes"),
    [
        ("ReduceSum <keepdims = 0> (x, axes)", (0, 3)),
        ("ReduceSum <keepdims = 0> (x, axes)", (2, -1)),
        ("Squeeze (x, axes)", (0, 1)),
        ("Squeeze (x, axes)", (-4, 0)),
    ],
)
def test_what_are_no_axes_is_an_input_error(node: str, axes: tuple[int, int]) -> None:
    compiled = gcomp.compile(model(f"(float[1, 3, 1] x, int64[2] axes) => (float[n] y) {{ y = {node} }}"))
    with pytest.raises(InputError, match="axes"):
        compiled(numbers(1, 3, 1), _axes(*axes))


def test_an_axis_out_of_range_is_an_input_error() -> None:
    compiled = gcomp.compile(model("(float[n, 3] x, int64 a) => (float[n, 3] y) { y = CumSum (x, a) }"))
    for axis in (2, -3):
        with pytest.raises(InputError, match="axis"):
            compiled(numbers(1, 3), np.asarray(axis, np.int64))


def test_what_can_be_told_at_once() -> None:
    with pytest.raises(GcompError, match="3 axes"):
        imported("(float[n, 3] x, int64[3] a) => (float y) { y = ReduceSum <keepdims = 0> (x, a) }")
    with pytest.raises(UnsupportedError, match="number of axes"):
        imported("(float[n, 3] x, int64[k] a) => (float[b, c] y) { y = ReduceSum (x, a) }")
