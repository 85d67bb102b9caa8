"""f16 and bf16: sums and softmax are accumulated in f32, whatever a target would do by itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import gcomp
from tests.unit.onnx.graphs import model

NARROW = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def ulps(got: np.ndarray, exact: np.ndarray) -> float:
    """The greatest error in units in the last place of each exact value, in the dtype of `got`."""
    rounded = exact.astype(got.dtype).astype(np.float64)
    unit = np.spacing(np.abs(rounded).astype(np.float16)).astype(np.float64) if got.dtype == np.float16 else (
        2.0 ** (np.floor(np.log2(np.abs(rounded))) - 7)
    )  # fmt: skip
    return float(np.max(np.abs(got.astype(np.float64) - exact) / unit))


@pytest.mark.parametrize("name", NARROW)
def test_a_softmax_over_many_elements(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5000)).astype(NARROW[name])
    y = gcomp.compile(model(f"({name}[n, 5000] x) => ({name}[n, 5000] y) {{ y = Softmax(x) }}"))(x)[0]
    exponentials = np.exp(x.astype(np.float64))
    exact = exponentials / exponentials.sum(-1, keepdims=True)
    # Results near 2e-4 are f16 denormals, whose unit is fixed.
    assert ulps(y, exact) <= 0.51


@pytest.mark.parametrize("name", NARROW)
def test_a_depthwise_convolution(name: str) -> None:
    dtype, rng = NARROW[name], np.random.default_rng(0)
    x = rng.uniform(0.5, 1, (1, 3, 9, 9)).astype(dtype)
    w = rng.uniform(0.5, 1, (3, 1, 7, 7)).astype(dtype)
    graph = f"({name}[1, 3, 9, 9] x, {name}[3, 1, 7, 7] w) => ({name}[1, 3, 3, 3] y) {{ y = Conv<group = 3>(x, w) }}"
    y = gcomp.compile(model(graph, opset=22))(x, w)[0]
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (7, 7), axis=(2, 3))
    exact = np.einsum("ncijkl,ckl->ncij", windows, w[:, 0].astype(np.float64))
    assert ulps(y, exact) <= 0.51


def test_attention_rounds_once() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.uniform(0, 1, (1, 2, 6, 8)).astype(np.float16) for _ in range(3))
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, (1, 2, 6, 8)) for n in "qkvy"]
    graph = helper.make_graph([helper.make_node("Attention", ["q", "k", "v"], ["y"])], "g", tensors[:3], tensors[3:])
    y = gcomp.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11))(q, k, v)[0]
    wide = [a.astype(np.float64) for a in (q, k, v)]
    scores = np.exp(wide[0] @ wide[1].swapaxes(2, 3) / 8**0.5)
    assert ulps(y, scores / scores.sum(-1, keepdims=True) @ wide[2]) <= 0.51


def test_a_softmax_of_huge_products_is_finite() -> None:
    # The target contracts the product and the subtraction of its maximum into one multiply-add: squeezenet gave NaN.
    x = np.random.default_rng(0).uniform(1e9, 1e10, (1, 7, 13, 13)).astype(np.float32)
    graph = "(float[1, 7, 13, 13] x) => (float[1, 7, 1, 1] y) { p = GlobalAveragePool(x)\n y = Softmax<axis = 1>(p) }"
    y = gcomp.compile(model(graph))(x)[0]
    assert np.isfinite(y).all() and abs(float(y.sum()) - 1) < 1e-5
