"""ONNX's `Gradient`: of parts of the graph around the node, at the values that the node is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.ir.program import Program
from tests.unit.onnx.graphs import model, op_names, results


def program_of(graph: str) -> Program:
    return import_onnx(model(graph, imports=', "ai.onnx.preview.training" : 1'))


def found(graph: str, *inputs: Any) -> list[Any]:
    return results(program_of(graph), *(np.asarray(x, np.float32) for x in inputs))


def node(*outputs: str, inputs: str, xs: str, y: str, zs: str = "") -> str:
    """The text of a Gradient node."""
    lists = f'xs = [{_quoted(xs)}], y = "{y}"' + (f", zs = [{_quoted(zs)}]" if zs else "")
    return f"{', '.join(outputs)} = ai.onnx.preview.training.Gradient <{lists}> ({inputs})"


def _quoted(names: str) -> str:
    return ", ".join(f'"{name}"' for name in names.split())


def test_of_a_sum_of_products_before_it_is_computed() -> None:
    """ONNX does not say that `y` comes first, and the node reads no result of the part."""
    gradient = node("da", "db", inputs="a, b", xs="a b", y="d")
    graph = f"(float a, float b) => (float d, float da, float db) {{ {gradient} c = Add(a, b) d = Mul(c, a) }}"
    assert [float(v) for v in found(graph, 2, 5)] == [14, 9, 2]


def test_of_weights_of_a_layer_beside_a_central_difference() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 4)), rng.standard_normal((4, 2)) / 2
    part = "h = MatMul(x, w) s = Softmax<axis = 1>(h) q = Mul(s, s) y = ReduceSum<keepdims = 0>(q)"
    gradient = node("dw", inputs="w, x", xs="w", zs="x", y="y")
    graph = f"(float[3, 4] x, float[4, 2] w) => (float y, float[4, 2] dw) {{ {part} {gradient} }}"

    def loss(w: Any) -> float:
        e = np.exp(x @ w)
        return float(((e / e.sum(1, keepdims=True)) ** 2).sum())

    _, dw = found(graph, x, w)
    step = 1e-5
    for i in np.ndindex(w.shape):
        moved = np.zeros_like(w)
        moved[i] = step
        assert abs((loss(w + moved) - loss(w - moved)) / (2 * step) - dw[i]) < 1e-4


def test_in_an_intermediate_value_and_at_another_one() -> None:
    """The part begins at `h`; the second node gives another value for it."""
    at, other = (node(f"d{i}", inputs=f"{i}, z", xs="h", zs="z", y="y") for i in ("h", "k"))
    graph = f"""(float x, float z, float k) => (float dh, float dk) {{
      h = Exp(x) g = Mul(h, h) y = Mul(g, z) {at} {other} }}"""
    dh, dk = found(graph, 0, 3, 10)
    assert (float(dh), float(dk)) == (6, 60)


def test_of_a_gradient() -> None:
    first, second = node("g", inputs="x", xs="x", y="y"), node("gg", inputs="x", xs="x", y="g")
    graph = f"(float x) => (float g, float gg) {{ s = Mul(x, x) y = Mul(s, x) {first} {second} }}"
    assert [float(v) for v in found(graph, 2)] == [12, 12]


def test_in_a_constant_whose_value_an_importer_asks_for() -> None:
    """Bounds of Clip are looked at when they are known: the derivative in one is 1 where it holds."""
    gradient = node("d", inputs="low", xs="low", y="y")
    graph = f"""(float[3] x) => (float d) <float low = {{1}}> {{
      c = Clip(x, low) y = ReduceSum<keepdims = 0>(c) {gradient} }}"""
    assert float(found(graph, [0, 0.5, 4])[0]) == 2


def test_inside_a_branch_in_what_the_graph_around_it_has() -> None:
    gradient = node("d", inputs="x", xs="x", y="y")
    graph = f"""(bool c, float x) => (float r) {{
      r = If(c) <then_branch = t () => (float d) {{ y = Mul(x, x) {gradient} }},
                 else_branch = e () => (float n) {{ n = Neg(x) }}> }}"""
    program = program_of(graph)
    got = [float(results(program, np.array(c), np.float32(3))[0]) for c in (True, False)]
    assert got == [6, -3]


def test_of_a_loop() -> None:
    """Four times the square: x ** 16."""
    gradient = node("d", inputs="x", xs="x", y="y")
    graph = f"""(float x) => (float d) <int64 n = {{4}}, bool yes = {{1}}> {{
      y = Loop(n, yes, x) <body = b (int64 i, bool c, float v) => (bool k, float w)
                           {{ k = Identity(c) w = Mul(v, v) }}> {gradient} }}"""
    assert float(found(graph, 1.5)[0]) == pytest.approx(16 * 1.5**15, rel=1e-5)


def test_no_barrier_is_left() -> None:
    gradient = node("d", inputs="x", xs="x", y="y")
    program = program_of(f"(float x) => (float y, float d) {{ y = Mul(x, x) {gradient} }}")
    assert "stablehlo.optimization_barrier" not in op_names(program)
    assert {"y", "d"} <= set(program.names)


REFUSED = {
    "several numbers": ("x", "x", "s", "(float[2] x) => (float[2] d)", UnsupportedError, "derivative of one number"),
    "no such name": ("x", "x", "nowhere", "(float x) => (float d)", InvalidModelError, "`nowhere`"),
    "its own result": ("x", "x", "d", "(float x) => (float d)", InvalidModelError, "its own input"),
    "integers": ("x", "x", "s", "(int64 x) => (int64 d)", InvalidModelError, "no floats"),
    "too few inputs": ("x", "x s", "s", "(float x) => (float d)", InvalidModelError, "named by xs and zs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_derivative_is_refused(case: str) -> None:
    inputs, xs, y, signature, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        program_of(f"{signature} {{ s = Mul(x, x) {node('d', inputs=inputs, xs=xs, y=y)} }}")
