"""Models as torch's exporters write them: reduced cases of what exported architectures had wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper
from onnx.checker import check_model

import gcomp
from gcomp.runtime.plan import HostStep


def _model(nodes: Sequence[Any], x: Sequence[int | str], y: Sequence[Any], constants: dict[str, Any]) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "exported",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, list(y))],
        [helper.make_tensor(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape, v.tobytes(), raw=True)
         for k, v in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    check_model(model)
    return model


def _host_functions(model: gcomp.Model) -> list[str]:
    return [step.function for step in model.plan.steps if isinstance(step, HostStep)]


def test_a_constant_size_that_went_through_floats_stays_known_beside_a_symbolic_one() -> None:
    """MobileViT by TorchScript: `ceil(height / 2) * 2` in f32, times the symbolic batch, is a Reshape's target."""
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"]),
        node("Gather", ["shape", "one"], ["height"]),
        node("Cast", ["height"], ["wide"], to=TensorProto.FLOAT),
        node("Div", ["wide", "two"], ["half"]),
        node("Ceil", ["half"], ["whole"]),
        node("Cast", ["whole"], ["rows"], to=TensorProto.INT64),
        node("Mul", ["batch", "rows"], ["count"]),
        node("Unsqueeze", ["count", "axes"], ["first"]),
        node("Unsqueeze", ["rows", "axes"], ["second"]),
        node("Concat", ["first", "minus"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["flat"]),
        node("Concat", ["second", "minus"], ["other"], axis=0),
        node("Reshape", ["flat", "other"], ["y"]),
    ]
    constants = {
        "zero": np.int64(0), "one": np.int64(1), "two": np.float32(2), "axes": np.array([0], np.int64),
        "minus": np.array([-1], np.int64),
    }  # fmt: skip
    model = gcomp.compile(_model(nodes, ("batch", 7, 4), ("a", "b"), {k: np.asarray(v) for k, v in constants.items()}))
    assert _host_functions(model) == []
    for batch in (1, 3):
        x = np.arange(batch * 28, dtype=np.float32).reshape(batch, 7, 4)
        (y,) = model(x)
        np.testing.assert_array_equal(y, x.reshape(4, -1))
