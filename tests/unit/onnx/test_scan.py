"""Scan against ONNX Runtime: every axis and direction, batches and lengths of Scan-8, symbolic lengths, errors."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.graphs import imported, model, numbers, results, shapes
from tests.unit.onnx.structured import assert_same, run, run_peer, run_xla

BODY = """b (float[2, 3] s, float[2, 3] p, float[2, 3] q) => (float[2, 3] t, float[2, 3] u, float[2, 3] v) {
    w = Mul(p, q)  t = Add(s, w)  u = Identity(t)  v = Sub(p, s) }"""


def along(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """A shape with one more dim at an axis."""
    axis %= len(shape) + 1
    return (*shape[:axis], size, *shape[axis:])


def text(shape: tuple[Any, ...]) -> str:
    """A tensor type."""
    return f"float[{', '.join(map(str, shape))}]"


@pytest.mark.parametrize("axes", [(0, 0, 0, 0), (1, 0, 2, 1), (-1, 1, 0, -1), (2, -2, -3, 2)])
@pytest.mark.parametrize("directions", list(product((0, 1), repeat=3)))
def test_every_axis_and_direction(axes: tuple[int, ...], directions: tuple[int, ...]) -> None:
    n, first, second = 4, directions[:2], (directions[2], 1 - directions[2])
    xs = [numbers(*along((2, 3), axis, n)) for axis in axes[:2]]
    ys = [text(along((2, 3), axis, n)) for axis in axes[2:]]
    proto = model(f"""(float[2, 3] s, {text(xs[0].shape)} a, {text(xs[1].shape)} b)
        => (float[2, 3] t, {ys[0]} u, {ys[1]} v) {{
      t, u, v = Scan (s, a, b) <num_scan_inputs = 2, scan_input_axes = {list(axes[:2])},
        scan_input_directions = {list(first)}, scan_output_axes = {list(axes[2:])},
        scan_output_directions = {list(second)}, body = {BODY}> }}""")
    s = numbers(2, 3) / 4
    for got, want in zip(run(proto, s, *xs), run_peer(proto, s, *xs), strict=True):
        assert_same(got, want)


CUMULATIVE = """(float[2] s, float[n, 2] xs) => (float[2] last, float[n, 2] rows) {
  last, rows = Scan (s, xs) <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
    body = b (float[2] a, float[2] x) => (float[2] c, float[2] r) { c = Add(a, x)  r = Identity(c) }> }"""


@pytest.mark.parametrize("n", [1, 2, 5])
def test_symbolic_lengths(n: int) -> None:
    proto, xs, s = model(CUMULATIVE), numbers(n, 2), np.float32([1, 2])
    assert shapes(import_onnx(proto)) == [["2"], ["n", "2"]]
    for run_it in (run, run_xla):
        for got, want in zip(run_it(proto, s, xs), run_peer(proto, s, xs), strict=True):
            assert_same(got, want)


@pytest.mark.parametrize("dims", [{"n": 0}, {"n": "0..8"}])
@pytest.mark.parametrize("execute", [run, run_xla])
def test_no_slices_leave_the_state_and_give_no_rows(dims: Any, execute: Any) -> None:
    last, rows = execute(model(CUMULATIVE), np.float32([1, 2]), numbers(0, 2), dims=dims)
    assert_same(last, np.float32([1, 2]))
    assert (rows.shape, rows.dtype) == ((0, 2), np.float32)


def test_scan_inputs_of_other_lengths_are_refused_when_called() -> None:
    graph = """(float[n] a, float[m] b) => (float[k] y) {
      y = Scan (a, b) <num_scan_inputs = 2, body = g (float p, float q) => (float r) { r = Add(p, q) }> }"""
    program = imported(graph)
    assert [str(c.lhs) + str(c.rhs) for c in program.constraints] in (["nm"], ["mn"])
    assert np.array_equal(results(program, numbers(3), numbers(3))[0], numbers(3) * 2)
    with pytest.raises(InvalidModelError, match="Scan"):
        imported(graph.replace("[n]", "[3]").replace("[m]", "[4]"))


def test_scan_over_integers_without_states() -> None:
    graph = """(int64[3, 2] a) => (int64[3] y) {
      y = Scan (a) <num_scan_inputs = 1, body = g (int64[2] p) => (int64 r) { r = ReduceSum<keepdims = 0>(p) }> }"""
    a = np.arange(6).reshape(3, 2)
    assert_same(run(model(graph), a), run_peer(model(graph), a))


# ---- Scan-8 ------------------------------------------------------------------------------------------------------


def batched(lengths: str, directions: str, batch: str = "2", n: str = "4") -> str:
    """A Scan-8 of two scan inputs."""
    declared = f"int64[{batch}] k, " if lengths else ""
    return f"""({declared}float[{batch}, 3] s, float[{batch}, {n}, 3] a, float[{batch}, {n}, 3] b)
        => (float[{batch}, 3] t, float[{batch}, {n}, 3] u, float[{batch}, {n}] v) {{
      t, u, v = Scan ({lengths}, s, a, b) <num_scan_inputs = 2{directions},
        body = g (float[3] s0, float[3] p, float[3] q) => (float[3] s1, float[3] x, float y) {{
          w = Mul(p, q)  s1 = Add(s0, w)  x = Sub(q, s0)  y = ReduceSum<keepdims = 0>(s1) }}> }}"""


INPUTS = (numbers(2, 3), numbers(2, 4, 3) / 4, numbers(2, 4, 3)[::-1] / 8)


@pytest.mark.parametrize("directions", ["", ", directions = [0, 1]", ", directions = [1, 1]"])
def test_each_element_of_a_batch_is_scanned(directions: str) -> None:
    proto = model(batched("", directions), opset=8)
    for got, want in zip(run(proto, *INPUTS), run_peer(proto, *INPUTS), strict=True):
        assert_same(got, want)


@pytest.mark.parametrize("directions", ["", ", directions = [0, 1]", ", directions = [1, 1]"])
@pytest.mark.parametrize("lengths", [(4, 4), (1, 3), (4, 2)])
def test_sequences_have_lengths_of_their_own(directions: str, lengths: tuple[int, int]) -> None:
    proto, k = model(batched("k", directions), opset=8), np.array(lengths)
    got, want = run(proto, k, *INPUTS), run_peer(proto, k, *INPUTS)
    assert_same(got[0], want[0])
    for i, length in enumerate(lengths):  # what comes after a sequence is undefined
        assert_same(got[1][i, :length], want[1][i, :length])
        assert_same(got[2][i, :length], want[2][i, :length])
        assert not got[1][i, length:].any()


def test_batches_and_lengths_may_be_symbolic() -> None:
    proto = model(batched("k", ", directions = [0, 1]", "b", "n"), opset=8)
    assert shapes(import_onnx(proto)) == [["b", "3"], ["b", "n", "3"], ["b", "n"]]
    k = np.array([3, 4])
    for execute in (run, run_xla):
        assert_same(execute(proto, k, *INPUTS)[0], run_peer(proto, k, *INPUTS)[0])


# ---- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("num_scan_inputs = 0", "num_scan_inputs is 0"),
        ("num_scan_inputs = 3", "num_scan_inputs is 3"),
        ("num_scan_inputs = -1", "num_scan_inputs is -1"),
        ("num_scan_inputs = 1, scan_input_axes = [0, 1]", "scan_input_axes is [0, 1]"),
        ("num_scan_inputs = 1, scan_input_axes = [2]", "axis 2 is out of range"),
        ("num_scan_inputs = 1, scan_output_axes = [2]", "axis 2 is out of range"),
        ("num_scan_inputs = 1, scan_output_axes = [0, 0]", "scan_output_axes is [0, 0]"),
        ("num_scan_inputs = 1, scan_input_directions = [2]", "direction is 0"),
        ("num_scan_inputs = 1, scan_output_directions = [0, 0]", "scan_output_directions is [0, 0]"),
        ("num_scan_inputs = 2", "size 5"),
    ],
)
def test_attributes_that_do_not_fit_are_refused(attributes: str, words: str) -> None:
    graph = CUMULATIVE.replace(
        "num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]", attributes
    )
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(model(graph.replace("[n, 2]", "[5, 2]")))
    assert words in str(caught.value) and "Scan:last" in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("c = Concat<axis = 0>(a, x)  r = Identity(x)", "size 4"),
        ("i = Cast<to = 7>(a)  c = Identity(i)  r = Identity(x)", "tensor(int64)"),
        ("c = ReduceSum<keepdims = 0>(a)  r = Identity(x)", "type must stay the same"),
    ],
)
def test_states_that_change_are_refused(nodes: str, words: str) -> None:
    graph = CUMULATIVE.replace("c = Add(a, x)  r = Identity(c)", nodes)
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(model(graph))
    assert words in str(caught.value)


def test_a_sequence_is_no_row() -> None:
    proto = model(CUMULATIVE.replace("float[2] r) { c = Add(a, x)  r = Identity(c) }",
                                     "seq(float[2]) r) { c = Add(a, x)  r = SequenceConstruct(x) }"))  # fmt: skip
    with pytest.raises((InvalidModelError, UnsupportedError), match="Scan"):
        import_onnx(proto)
