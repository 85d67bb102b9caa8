"""Models as ONNX Runtime's quantization tools write them, compiled, against ONNX Runtime without its fusions.

(With them, models in QDQ form are rewritten there so that results move by several quantized values: not what the file
says.) Both sides round to quantized values after every operator, of sums that they add in different orders. Only where
such a sum lies within a few ulps of the middle between two quantized values may the results differ, by that one step:
it is rare, and what it does to the outputs is at most one step of them. Integers are exact on both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import QuantFormat, QuantType

import gcomp
from benchmarks.quantized_models import conv_net, dynamically_quantized, lstm, statically_quantized, transformer
from tests.support.thinning import swept

Array = np.ndarray[Any, Any]
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "conv_net": lambda: conv_net(20, 8, pool="MaxPool"),
    "averaged": lambda: conv_net(20, 8),
    "transformer": lambda: transformer(1, 8, 16, 2),
    "lstm": lambda: lstm(5, 6, 8),
}


@cache
def made(name: str) -> onnx.ModelProto:
    return MODELS[name]()


def sample(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    (port,) = model.graph.input
    shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
    return {port.name: np.random.default_rng(seed).normal(size=shape).astype(np.float32)}


def results(model: onnx.ModelProto, samples: int = 2) -> list[tuple[Array, Array]]:
    """gcomp's and ONNX Runtime's results for a few inputs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    compiled = gcomp.compile(model)
    inputs = [sample(model, seed) for seed in range(samples)]
    return [(np.asarray(compiled(**x)[0]), np.asarray(session.run(None, x)[0])) for x in inputs]


def output_scale(model: onnx.ModelProto) -> float:
    """The scale (the step between neighbours) of the last DequantizeLinear, which makes the output."""
    last = next(n for n in reversed(model.graph.node) if n.op_type == "DequantizeLinear")
    assert last.output[0] == model.graph.output[0].name
    (scale,) = [onnx.numpy_helper.to_array(t) for t in model.graph.initializer if t.name == last.input[1]]
    return float(scale)


FORMS = [
    (QuantType.QUInt8, False, False), (QuantType.QUInt8, True, True), (QuantType.QInt8, True, False),
    (QuantType.QInt8, False, True),
]  # fmt: skip
"""The type of activations, whether weights are quantized per channel, whether zero points are 0."""


def in_qdq(name: str, activation: Any, per_channel: bool, symmetric: bool) -> onnx.ModelProto:
    return statically_quantized(
        made(name),
        quant_format=QuantFormat.QDQ,
        activation_type=activation,
        per_channel=per_channel,
        extra_options={"ActivationSymmetric": symmetric, "WeightSymmetric": symmetric},
    )


@pytest.mark.parametrize("name", ["conv_net", *swept("transformer")])
@pytest.mark.parametrize("form", FORMS)
def test_static_qdq(name: str, form: tuple[Any, bool, bool]) -> None:
    model = in_qdq(name, *form)
    scale = output_scale(model)
    for got, want in results(model):
        apart = np.rint((got - want) / scale)
        assert np.abs(apart).max() <= 1 and (apart != 0).mean() <= 0.05
        assert np.unique(want).size > 3


def test_means_of_quantized_values_round_by_one_step_at_most() -> None:
    """The mean of four lies in the middle between two values in a quarter of all cases: there, ulps decide."""
    model = in_qdq("averaged", QuantType.QUInt8, True, False)
    names = [n.output[0] for n in model.graph.node if n.output[0].startswith("averagepool") and "Dequantize" in n.name]
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in names)
    (scale,) = (
        onnx.numpy_helper.to_array(t)
        for t in model.graph.initializer
        if t.name in {n.input[1] for n in model.graph.node if n.output[0] in names}
    )
    for got, want in results(model):
        apart = np.rint((got - want) / scale)
        assert np.abs(apart).max() <= 1 and (apart != 0).mean() <= 0.25


@pytest.mark.parametrize("name", ["conv_net", "transformer"])
@pytest.mark.parametrize(
    ("activation", "per_channel"),
    [(QuantType.QInt8, False), pytest.param(QuantType.QUInt8, True, marks=pytest.mark.slow)],
)
def test_static_operators(name: str, activation: Any, per_channel: bool) -> None:
    model = statically_quantized(
        made(name), quant_format=QuantFormat.QOperator, activation_type=activation, per_channel=per_channel
    )
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds["QLinearConv" if name == "conv_net" else "QLinearMatMul"] > 4
    for got, want in results(model):
        # The largest output spans half of the values at most; pools and sigmoids of quantized values may round to the
        # other one.
        step = np.abs(want).max() / 100
        assert np.abs(got - want).max() <= step and np.median(np.abs(got - want)) <= 1e-5


@pytest.mark.parametrize("name", ["conv_net", "transformer", "lstm"])
@pytest.mark.parametrize(
    ("weights", "per_channel"),
    [(QuantType.QUInt8, False), pytest.param(QuantType.QInt8, True, marks=pytest.mark.slow)],
)
def test_dynamic(name: str, weights: Any, per_channel: bool) -> None:
    if name == "conv_net" and weights == QuantType.QInt8:
        pytest.skip("ONNX Runtime has no ConvInteger of signed weights")
    model = dynamically_quantized(made(name), weight_type=weights, per_channel=per_channel)
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds[{"conv_net": "ConvInteger", "transformer": "MatMulInteger", "lstm": "DynamicQuantizeLSTM"}[name]]
    for got, want in results(model):
        # A step of an activation (1 / 255 of its range) that falls to the other side moves outputs by less than 1 %.
        most = np.abs(want).max()
        assert np.abs(got - want).max() <= 0.01 * most and np.median(np.abs(got - want)) <= 1e-5 * most
