"""Sizes that data determine: host steps in the program, and ONNX Runtime as the judge of both runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest

import gcomp
from gcomp.errors import InputError, InvalidModelError, UnsupportedError
from gcomp.ir.host import HostOp
from gcomp.reference.interpreter import interpret
from tests.unit.onnx.graphs import imported, model, numbers

F32 = np.float32


def _ints(*values: int) -> Any:
    return np.asarray(values, np.int64)


def _boxes(seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    # Rounded scores are often equal; corners come in any order.
    return rng.random((2, 20, 4)).astype(F32), rng.random((2, 3, 20)).astype(F32).round(1)


CASES: dict[str, tuple[str, Sequence[tuple[Any, ...]]]] = {
    "NonZero": (
        "(float[a, b] x) => (int64[n, 2] t, float[n] y, float[1] z)"
        "{ i = NonZero(x) t = Transpose(i) y = GatherND(x, t) z = ReduceSum(y) }",
        [(F32([[1, 0, 2], [0, 3, 0]]),), (np.zeros((2, 2), F32),), (np.ones((3, 1), F32),)],
    ),
    "NonZero of what a host step gave": (
        "(float[a] x) => (int64[1, n] j) { i = NonZero(x) j = NonZero(i) }",
        [(F32([0, 1, 0, 2]),), (F32([5, 1, 0, 2]),), (F32([5, 0, 0]),)],
    ),
    "Range": (
        "(float s, float l, float d) => (float[n] y) { y = Range(s, l, d) }",
        [(F32(1), F32(5), F32(0.5)), (F32(5), F32(1), F32(-1.3)), (F32(5), F32(1), F32(1)), (F32(0), F32(1), F32(0.1))],
    ),
    "Range of integers": (
        "(int64 s, int64 l, int64 d) => (int64[n] y) { y = Range(s, l, d) }",
        [tuple(map(np.int64, v)) for v in ((0, 7, 2), (7, 0, -2), (3, 3, 1), (-4, 5, 3))],
    ),
    "Slice": (
        "(float[n, 5] x, int64[2] s, int64[2] e) => (float[k, m] y)"
        "<int64[2] a = {0, 1}, int64[2] p = {1, -2}> { y = Slice(x, s, e, a, p) }",
        [
            (numbers(4, 5), _ints(*s), _ints(*e))
            for s, e in (([0, 4], [2, 0]), ([-2, -1], [9, -9]), ([1, 2], [1, 4]), ([0, 4], [4, -6]), ([3, 9], [2, 1]))
        ],
    ),
    "Slice with one bound from data": (
        "(float[n, 5] x, int64[1] k) => (float[n, m] y) <int64[1] z = {0}, int64[1] one = {1}>"
        "{ y = Slice(x, z, k, one) }",
        [(numbers(3, 5), _ints(k)) for k in (0, 2, 5, 9, -1, -7)],
    ),
    "Reshape": (
        "(float[n, 6] x, int64[3] s) => (float[a, b, c] y) { y = Reshape(x, s) }",
        [(numbers(4, 6), _ints(*s)) for s in ([2, 3, 4], [0, -1, 2], [-1, 1, 1], [4, 0, 1])],
    ),
    "Reshape to a target that is partly known": (
        "(float[n, 6] x, int64[1] k) => (float[a, b, c] y) <int64[1] free = {-1}>"
        "{ d = Shape<start = 0, end = 1>(x) s = Concat<axis = 0>(d, k, free) y = Reshape(x, s) }",
        [(numbers(4, 6), _ints(k)) for k in (1, 2, 6)],
    ),
    "Expand": (
        "(float[n, 1] x, int64[3] s) => (float[a, b, c] y) { y = Expand(x, s) }",
        [(numbers(4, 1), _ints(*s)) for s in ([2, 4, 4], [3, 1, 2], [0, 4, 1])],
    ),
    "Tile": (
        "(float[n, 2] x, int64[2] r) => (float[a, b] y) { y = Tile(x, r) }",
        [(numbers(2, 2), _ints(*r)) for r in ([2, 4], [3, 1], [0, 4])],
    ),
    "ConstantOfShape": (
        "(int64[2] s) => (float[a, b] y) { y = ConstantOfShape(s) }",
        [(_ints(2, 3),), (_ints(0, 3),)],
    ),
    "Compress": (
        "(float[n, 4] x, bool[k] c) => (float[n, m] y) { y = Compress<axis = 1>(x, c) }",
        [(numbers(2, 4), np.array(c)) for c in ([True, False], [False] * 4, [True] * 4)],
    ),
    "Unique": (
        "(float[2, k] x) => (float[2, u] y, int64[u] a, int64[k] b, int64[u] c) { y, a, b, c = Unique<axis = 1>(x) }",
        [(F32([[1, 2, 1], [0, 3, 0]]),), (np.zeros((2, 4), F32),)],
    ),
    "Unique in order of appearance": (
        "(float[k] x) => (float[u] y, int64[u] a, int64[k] b, int64[u] c) { y, a, b, c = Unique<sorted = 0>(x) }",
        [(F32([3, 1, 3, 2, 1]),), (F32([1]),)],
    ),
    "NonMaxSuppression": (
        "(float[2, n, 4] b, float[2, 3, n] s) => (int64[k, 3] y)"
        "<int64[1] m = {3}, float[1] i = {0.3}, float[1] t = {0.2}> { y = NonMaxSuppression(b, s, m, i, t) }",
        [_boxes(seed) for seed in range(5)],
    ),
    "NonMaxSuppression of centers": (
        "(float[2, n, 4] b, float[2, 3, n] s) => (int64[k, 3] y) <int64[1] m = {9}, float[1] i = {0.1}>"
        "{ y = NonMaxSuppression<center_point_box = 1>(b, s, m, i) }",
        [_boxes(seed) for seed in range(3)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_data_dependent_sizes_are_what_onnx_runtime_finds(name: str) -> None:
    graph, feeds = CASES[name]
    proto = model(graph, 17)
    program, compiled = imported(graph, 17), gcomp.compile(proto)
    assert any(isinstance(op, HostOp) for op in program.block.ops)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for values in feeds:
        feed = [np.asarray(value) for value in values]
        expected = session.run(None, {port.name: x for port, x in zip(session.get_inputs(), feed, strict=True)})
        for run in (interpret(program, feed), compiled(*feed)):
            for got, wanted in zip(run, expected, strict=True):
                assert np.asarray(got).dtype == wanted.dtype
                np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6)


def test_an_artifact_keeps_its_host_steps(tmp_path: Any) -> None:
    graph, feeds = CASES["NonMaxSuppression"]
    first = gcomp.compile(model(graph, 17))
    first.save(tmp_path / "m.gcomp")
    again = gcomp.load(tmp_path / "m.gcomp")
    assert again.segments == first.segments
    np.testing.assert_array_equal(np.asarray(again(*feeds[0])[0]), np.asarray(first(*feeds[0])[0]))


def test_a_negative_size_is_an_input_error_that_names_the_node() -> None:
    compiled = gcomp.compile(model("(float[2] x, int64[1] r) => (float[n] y) { [rep] y = Tile(x, r) }", 17))
    with pytest.raises(InputError, match=r"repeats of node `rep` \(Tile\).*\[-1\]"):
        compiled(numbers(2), _ints(-1))


def test_a_target_of_another_size_is_refused_when_it_is_known() -> None:
    compiled = gcomp.compile(model("(float[4] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }", 17))
    with pytest.raises(InputError, match="must equal"):
        compiled(numbers(4), _ints(3, 2))


def test_a_data_dependent_size_inside_a_branch_is_unsupported() -> None:
    graph = """(bool p, float[4] x) => (int64[1, n] y) {
        y = If(p) <then_branch = t () => (int64[1, n] a) { a = NonZero(x) },
                   else_branch = e () => (int64[1, n] c) { z = Neg(x) c = NonZero(z) }>
    }"""
    with pytest.raises(UnsupportedError, match="inside a loop or a branch"):
        imported(graph, 17)


def test_a_condition_longer_than_the_axis_is_refused() -> None:
    with pytest.raises(InvalidModelError, match="its condition has 5 elements"):
        imported("(float[4] x, bool[5] c) => (float[n] y) { y = Compress<axis = 0>(x, c) }", 17)


def test_what_depends_on_shapes_only_needs_no_host_step() -> None:
    program = imported(
        "(float[n, 3] x) => (float[a, b] y) <int64[1] two = {2}>"
        "{ s = Shape(x) d = Mul(s, two) y = Expand(x, s) z = ConstantOfShape(d) }",
        17,
    )
    assert not any(isinstance(op, HostOp) for op in program.block.ops)
