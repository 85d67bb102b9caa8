"""Tensors without elements where the sizes of results are data: those may be 0 too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import InputError
from gcomp.reference.interpreter import interpret
from tests.unit.onnx.graphs import imported, model, numbers


def _ints(*values: int) -> Any:
    return np.asarray(values, np.int64)


RESHAPE = "(float[0, 3, 4] x, int64[3] s) => (float[a, b, c] y) { y = Reshape <allowzero = 1> (x, s) }"


@pytest.mark.parametrize("target", [(3, 4, 0), (0, 0, 0), (0, 7, 1)])
def test_nothing_reshapes_to_any_shape_without_elements(target: tuple[int, ...]) -> None:
    for run in (lambda *v: interpret(imported(RESHAPE), list(v)), gcomp.compile(model(RESHAPE))):
        (got,) = run(np.zeros((0, 3, 4), np.float32), _ints(*target))
        assert np.asarray(got).shape == target


def test_nothing_does_not_reshape_to_something() -> None:
    with pytest.raises(InputError, match="must equal"):
        gcomp.compile(model(RESHAPE))(np.zeros((0, 3, 4), np.float32), _ints(3, 4, 1))


def test_a_dim_that_may_be_0_leaves_the_others_open() -> None:
    graph = """(float[n, 6] x, int64[1] k) => (float[n, m] y)
        { d = Shape<end = 1>(x)  s = Concat<axis = 0>(d, k)  y = Reshape <allowzero = 1> (x, s) }"""
    program = imported(graph, dims={"n": "0.."})
    assert interpret(program, [np.zeros((0, 6), np.float32), _ints(5)])[0].shape == (0, 5)
    assert np.array_equal(interpret(program, [numbers(2, 6), _ints(6)])[0], numbers(2, 6))
    with pytest.raises(InputError):
        interpret(program, [numbers(2, 6), _ints(5)])


def test_nothing_splits_into_nothing() -> None:
    graph = "(float[0] x, int64[2] s) => (float[a] y, float[b] z) { y, z = Split <axis = 0> (x, s) }"
    compiled = gcomp.compile(model(graph))
    assert [np.asarray(y).shape for y in compiled(np.zeros(0, np.float32), _ints(0, 0))] == [(0,), (0,)]
    with pytest.raises(InputError, match="must equal"):
        compiled(np.zeros(0, np.float32), _ints(0, 1))


def test_parts_of_size_0() -> None:
    graph = "(float[n] x, int64[3] s) => (float[a] y, float[b] z, float[c] w) { y, z, w = Split <axis = 0> (x, s) }"
    compiled = gcomp.compile(model(graph))
    for sizes in ((0, 4, 0), (1, 0, 3), (0, 0, 4)):
        parts = [np.asarray(y) for y in compiled(numbers(4), _ints(*sizes))]
        assert [len(p) for p in parts] == list(sizes) and np.array_equal(np.concatenate(parts), numbers(4))


def test_a_size_that_has_no_choice_is_checked() -> None:
    compiled = gcomp.compile(model("(float[4] x, int64[1] s) => (float[m] y) { y = Reshape(x, s) }"))
    assert np.array_equal(np.asarray(compiled(numbers(4), _ints(4))[0]), numbers(4))
    with pytest.raises(InputError, match="must equal"):
        compiled(numbers(4), _ints(5))
