"""Slice: bounds that are constants or data, next to ONNX Runtime; what contradicts itself is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from onnx import parser

from gcomp.dims import parse
from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.reference.interpreter import interpret

ort = pytest.importorskip("onnxruntime")

FARTHEST = (1 << 63) - 1
PLACES = (-FARTHEST - 1, -4, -1, 0, 2, FARTHEST)
STEPS = (-FARTHEST - 1, -2, -1, 1, 2, FARTHEST)


def model(graph: str, opset: int = 22) -> Any:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {graph}')


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize("step", STEPS)
def test_bounds_are_clamped_as_onnx_runtime_does(size: int, step: int) -> None:
    lists = f"<int64[1] axis = {{0}}, int64[1] step = {{{step}}}> {{ y = Slice(x, s, e, axis, step) }}"
    late = model(f"g (float[{size}] x, int64[1] s, int64[1] e) => (y) {lists}")
    peer, program = ort.InferenceSession(late.SerializeToString()), import_onnx(late)
    x = np.arange(size, dtype=np.float32)
    # ONNX Runtime takes the greatest end of a backward slice for "through the first", which ONNX does not say.
    ends = PLACES if step > 0 else PLACES[:-1]
    for start, end in itertools.product(PLACES, ends):
        bounds = [np.asarray([v], np.int64) for v in (start, end)]
        [wanted] = peer.run(None, {"x": x, "s": bounds[0], "e": bounds[1]})
        assert np.array_equal(interpret(program, [x, *bounds])[0], wanted), (start, end)
        fixed = import_onnx(late, constants={"s": bounds[0], "e": bounds[1]})
        assert np.array_equal(interpret(fixed, [x])[0], wanted), (start, end)


@pytest.mark.parametrize("start", [-3, -1, 0, 2, FARTHEST])
@pytest.mark.parametrize("end", [-FARTHEST - 1, -3, -1, 0])
@pytest.mark.parametrize("step", [-1, -2, -3, -FARTHEST])
def test_backward_through_a_symbolic_dim(start: int, end: int, step: int) -> None:
    graph = f"""g (float[n] x) => (y)
        <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] axis = {{0}}, int64[1] step = {{{step}}}>
        {{ y = Slice(x, s, e, axis, step) }}"""
    program, peer = import_onnx(model(graph)), ort.InferenceSession(model(graph).SerializeToString())
    for size in (0, 1, 2, 3, 5, 8):
        x = np.arange(size, dtype=np.float32)
        assert np.array_equal(interpret(program, [x])[0], peer.run(None, {"x": x})[0]), size


ENDS = [10**9, (1 << 31) - 1, 1 << 31, FARTHEST]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("form", ["0 to end by 1", "-end to end by 1", "-end to -1 by 1", "end to -end by -1"])
def test_a_far_end_leaves_sizes_as_they_are(end: int, form: str) -> None:
    numbers = [int(word) for word in form.replace("end", str(end)).split() if word not in ("to", "by")]
    start, stop, step = numbers
    graph = f"""g (float[n] x) => (y) <int64[1] s = {{{start}}}, int64[1] e = {{{stop}}}, int64[1] axis = {{0}},
        int64[1] step = {{{step}}}> {{ y = Slice(x, s, e, axis, step) }}"""
    program = import_onnx(model(graph))
    assert program.outputs()[0].shape == (parse("n" if stop != -1 else "max(0, n - 1)"),)
    for size in (1, 2, 5):
        x = np.arange(size, dtype=np.float32)
        assert np.array_equal(interpret(program, [x])[0], x[start:stop:step]), size


def test_longer_dims_than_an_end_that_is_only_far_are_refused() -> None:
    graph = """g (float[n, m, 2000000000] x) => (y) <int64[3] s = {0, 0, 0},
        int64[3] e = {1000000000, 2147483647, 1000000000}> { y = Slice(x, s, e) }"""
    program = import_onnx(model(graph))
    assert [(str(c.lhs), c.kind, c.rhs) for c in program.constraints] == [("n", "le", 10**9)]
    assert program.outputs()[0].shape == (parse("n"), parse("m"), 10**9)


def test_a_bound_that_may_count_from_either_end_is_not_guessed() -> None:
    graph = """g (float[n] x) => (y) <int64[1] two = {2}, int64[1] low = {-9999999999}, int64[1] axis = {0},
        int64[1] step = {-1}> { n = Shape(x)  s = Sub(n, two)  y = Slice(x, s, low, axis, step) }"""
    with pytest.raises(UnsupportedError, match="depends on sizes"):
        import_onnx(model(graph))


REFUSED = {
    "bounds of a scalar": "(float x, int64[1] s) => (y) <int64[1] e = {1}> { y = Slice(x, s, e) }",
    "more bounds than dims": "(float[3] x, int64[2] s) => (y) <int64[2] e = {1, 1}> { y = Slice(x, s, e) }",
    "lists of different lengths": "(float[3] x, int64[2] s) => (y) <int64[1] e = {1}> { y = Slice(x, s, e) }",
    "a bound that is no list": "(float[3] x, int64 s) => (y) <int64[1] e = {1}> { y = Slice(x, s, e) }",
    "a step of 0": "(float[3] x, int64[1] s) => (y) <int64[1] o = {0}> { y = Slice(x, s, s, o, o) }",
    "an axis twice": "(float[3, 3] x, int64[2] s) => (y) <int64[2] o = {0, 0}> { y = Slice(x, s, s, o) }",
    "constant bounds of a scalar": "(float x) => (y) <int64[1] e = {1}> { y = Slice(x, e, e) }",
}


@pytest.mark.parametrize("graph", REFUSED.values(), ids=list(REFUSED))
def test_slices_that_contradict_themselves_are_refused(graph: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(model(f"g {graph}"))
    assert "Slice" in str(caught.value) and caught.value.where and caught.value.why


def test_a_list_of_sizes_starts_backward_at_its_first_at_least() -> None:
    graph = """g (float[n, 3] x) => (y)
        <int64[1] s = {-9}, int64[1] e = {-99}, int64[1] axis = {0}, int64[1] step = {-1}>
        { n = Shape(x)  y = Slice(n, s, e, axis, step) }"""
    assert interpret(import_onnx(model(graph)), [np.zeros((5, 3), np.float32)])[0].tolist() == [5]
