"""Shape arithmetic as torch's exporters write it: symbolic, without host steps, and right at every size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from gcomp.errors import GcompError, InputError
from gcomp.ir.host import HostOp
from gcomp.ir.program import Program
from tests.unit.onnx.graphs import imported, model, numbers, results


def without_host_steps(graph: str, opset: int = 20) -> Program:
    program = imported(graph, opset)
    assert not any(isinstance(op, HostOp) for op in program.ops())
    return program


def peer(graph: str, opset: int = 20, **inputs: Any) -> list[Any]:
    """ONNX Runtime's outputs."""
    session = ort.InferenceSession(model(graph, opset).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


@pytest.mark.parametrize("divisor", [2, 3, -3])
def test_division_of_sizes_truncates_whatever_the_sign(divisor: int) -> None:
    graph = f"""(float[N] x) => (int64[1] y) <int64[1] five = {{5}}, int64[1] by = {{{divisor}}}>
        {{ n = Shape(x)  less = Sub(n, five)  y = Div(less, by) }}"""
    program = without_host_steps(graph)
    for n in range(1, 14):
        assert results(program, numbers(n))[0] == peer(graph, x=numbers(n))[0], n


SLICED = """(float[9, 2] table, float[N] x) => (float[K, 2] y)
    <int64[1] five = {5}, int64[1] zero = {0}, int64[1] end = {99}>
    { n = Shape(x)  at = Sub(five, n)  y = Slice(table, %s, zero) }"""


@pytest.mark.parametrize("bounds", ["at, end", "zero, at"])
def test_slice_bounds_whose_sign_depends_on_sizes_count_from_the_end(bounds: str) -> None:
    graph = SLICED % bounds
    program = without_host_steps(graph)
    for n in (1, 4, 5, 6, 9, 13, 14, 15, 20):
        (got,) = results(program, numbers(9, 2), numbers(n))
        (want,) = peer(graph, table=numbers(9, 2), x=numbers(n))
        assert np.array_equal(got, want), n


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("shape", ["[N]", "[N, 3]"])
def test_the_nonzero_of_a_filled_tensor_is_known(value: int, shape: str) -> None:
    graph = f"""(float{shape} x) => (int64[R, K] y)
        {{ s = Shape(x)  ones = ConstantOfShape<value = int64[1] {{{value}}}>(s)  y = NonZero(ones) }}"""
    x = numbers(4, 3) if "," in shape else numbers(4)
    (got,) = results(without_host_steps(graph), x)
    assert np.array_equal(got, peer(graph, x=x)[0])


SQUEEZED = """(float[B, N] x) => (float[B] y) <int64[1] one = {1}> {
    n = Shape<start = 1>(x)  flat = Equal(n, one)
    row = If(flat)<then_branch = a () => (float[B] u) { u = Squeeze(x, one) },
                   else_branch = b () => (float[B, N] v) { v = Identity(x) }>
    y = Neg(row) }"""


def test_a_conditional_squeeze_is_one_for_the_size_that_fits_its_rank() -> None:
    program = without_host_steps(SQUEEZED)
    assert np.array_equal(results(program, numbers(3, 1))[0], -numbers(3))
    with pytest.raises(InputError):
        results(program, numbers(3, 2))


def test_a_convolution_states_that_its_window_fits() -> None:
    graph = """(float[1, 1, N] x, float[1, 1, 4] w) => (float[1, 1, K] y) { y = Conv<strides = [2]>(x, w) }"""
    program = imported(graph)
    ones = np.ones((1, 1, 4), np.float32)
    for n in (4, 5, 9):
        assert np.allclose(results(program, numbers(1, 1, n), ones)[0], peer(graph, x=numbers(1, 1, n), w=ones)[0])
    with pytest.raises(InputError):
        results(program, numbers(1, 1, 3), ones)


def test_sizes_after_a_convolution_are_written_as_the_convolution_writes_them() -> None:
    """floor((n - 8) / 8) + 1 truncates in ONNX; the window fits, so that it is floor(n / 8)."""
    graph = """(float[1, 2, N] x, float[2, 2, 8] w) => (float[2, K] y)
        <int64[1] eight = {8}, int64[1] one = {1}, int64[1] two = {2}> {
        z = Conv<strides = [8]>(x, w)  n = Shape<start = 2>(x)
        a = Sub(n, eight)  c = Div(a, eight)  k = Add(c, one)  s = Concat<axis = 0>(two, k)  y = Reshape(z, s) }"""
    program = without_host_steps(graph)
    assert [str(s) for s in program.outputs()[0].shape] == ["2", "floordiv(N, 8)"]


@pytest.mark.parametrize("attributes", ["", "onesided = 1", "inverse = 1"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_fourier_transforms_of_symbolic_length(attributes: str, n: int) -> None:
    depth = 2 if "inverse" in attributes else 1
    graph = f"""(float[2, N, {depth}] x) => (float[2, K, 2] y) <int64 axis = {{1}}>
        {{ y = DFT{f"<{attributes}>" if attributes else ""}(x, , axis) }}"""
    x = numbers(2, n, depth)
    (got,) = results(without_host_steps(graph), x)
    (want,) = results(imported(graph, dims={"N": n}), x)
    assert np.array_equal(got, want)
    z = x[..., 0] + (1j * x[..., 1] if depth == 2 else 0)
    exact = np.fft.ifft(z) if depth == 2 else np.fft.fft(z)
    exact = exact[:, : n // 2 + 1] if "onesided" in attributes else exact
    assert np.abs(got[..., 0] + 1j * got[..., 1] - exact).max() < 1e-4


def test_a_symbolic_transform_is_text_that_parses() -> None:
    graph = "(float[2, N, 1] x) => (float[2, N, 2] y) <int64 axis = {1}> { y = DFT(x, , axis) }"
    text = imported(graph).text()
    assert Program.parse(text).text() == text


def test_short_time_transforms_of_signals_of_any_length() -> None:
    graph = """(float[1, N, 1] x) => (float[1, F, 5, 2] y) <int64 step = {3}, int64 length = {8}>
        { y = STFT(x, step, , length) }"""
    program = without_host_steps(graph)
    for n in (8, 10, 11, 20):
        (got,) = results(program, numbers(1, n, 1))
        (want,) = results(imported(graph, dims={"N": n}), numbers(1, n, 1))
        assert np.array_equal(got, want), n


def test_a_reshape_to_sizes_that_cannot_be_compared_is_checked_at_each_call() -> None:
    graph = """(float[A, B] x, float[C] like) => (float[C, B] y) {
        c = Shape(like)  b = Shape<start = 1>(x)  s = Concat<axis = 0>(c, b)  y = Reshape(x, s) }"""
    program = without_host_steps(graph)
    assert np.array_equal(results(program, numbers(3, 2), numbers(3))[0], numbers(3, 2))
    with pytest.raises(GcompError):
        results(program, numbers(3, 2), numbers(4))
