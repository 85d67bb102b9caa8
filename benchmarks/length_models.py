"""Four ONNX models whose inputs have a variable length, made as exporters make them: nodes compute shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.quantized_models import Graph

Array = np.ndarray[Any, Any]
BATCH = 2
_TYPES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "i1": TensorProto.BOOL}
Ports = Mapping[str, tuple[str, Sequence[int | str]]]


def _model(g: Graph, inputs: Ports, outputs: Ports) -> onnx.ModelProto:
    ports = [
        [helper.make_tensor_value_info(name, _TYPES[kind], list(shape)) for name, (kind, shape) in given.items()]
        for given in (inputs, outputs)
    ]
    graph = helper.make_graph(g.nodes, "g", ports[0], ports[1], initializer=g.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _dense(g: Graph, x: str, rows: int, columns: int) -> str:
    return g.node("Add", g.node("MatMul", x, g.weight(rows, columns)), g.constant(0.1 * g.rng.normal(size=columns)))


def _length(g: Graph, x: str, axis: int) -> str:
    """The size of a dimension as a vector of one element."""
    return g.node("Gather", g.node("Shape", x), g.constant([axis], np.int64))


def _heads(g: Graph, x: str, heads: int, width: int, order: Sequence[int]) -> str:
    shape = g.node(
        "Concat", g.constant([BATCH], np.int64), _length(g, x, 1), g.constant([heads, width // heads], np.int64), axis=0
    )
    return g.node("Transpose", g.node("Reshape", x, shape), perm=list(order))


def _attention(g: Graph, x: str, mask: str, heads: int, width: int) -> str:
    query, key, value = (
        _heads(g, _dense(g, x, width, width), heads, width, order)
        for order in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
    )
    scores = g.node("Div", g.node("MatMul", query, key), g.constant((width // heads) ** 0.5))
    heard = g.node("MatMul", g.node("Softmax", g.node("Add", scores, mask), axis=-1), value)
    shape = g.node("Concat", g.constant([BATCH], np.int64), _length(g, x, 1), g.constant([width], np.int64), axis=0)
    return _dense(g, g.node("Reshape", g.node("Transpose", heard, perm=[0, 2, 1, 3]), shape), width, width)


def _normalized(g: Graph, x: str, width: int) -> str:
    return g.node("LayerNormalization", x, g.constant(np.ones(width)), g.constant(np.zeros(width)))


def _barred(g: Graph, allowed: str) -> str:
    """0 where attention is allowed, and a large negative number where not."""
    return g.node("Where", allowed, g.constant(0.0), g.constant(-1e9))


def bert(layers: int = 2, width: int = 64, heads: int = 4, words: int = 100, most: int = 512) -> onnx.ModelProto:
    """Tokens and a mask through encoder layers; the first token's state, and the mean over what the mask allows."""
    g = Graph()
    places = g.node(
        "Slice",
        g.weight(most, width, fan=1),
        g.constant([0], np.int64),
        _length(g, "ids", 1),
        g.constant([0], np.int64),
    )
    x = _normalized(g, g.node("Add", g.node("Gather", g.weight(words, width, fan=1), "ids"), places), width)
    allowed = g.node("Cast", "mask", to=TensorProto.BOOL)
    mask = _barred(g, g.node("Unsqueeze", allowed, g.constant([1, 2], np.int64)))
    for _ in range(layers):
        x = _normalized(g, g.node("Add", x, _attention(g, x, mask, heads, width)), width)
        inner = _dense(g, x, width, 4 * width)
        erf = g.node("Erf", g.node("Mul", inner, g.constant(0.5**0.5)))
        gelu = g.node("Mul", g.node("Mul", inner, g.constant(0.5)), g.node("Add", erf, g.constant(1.0)))
        x = _normalized(g, g.node("Add", x, _dense(g, gelu, 4 * width, width)), width)
    pooled = g.node("Tanh", _dense(g, g.node("Gather", x, g.constant(0, np.int64), axis=1), width, width))
    weights = g.node("Unsqueeze", g.node("Cast", "mask", to=TensorProto.FLOAT), g.constant([2], np.int64))
    total = g.node("ReduceSum", g.node("Mul", x, weights), g.constant([1], np.int64), keepdims=0)
    mean = g.node("Div", total, g.node("ReduceSum", weights, g.constant([1], np.int64), keepdims=0))
    inputs: Ports = {"ids": ("i64", (BATCH, "seq")), "mask": ("i64", (BATCH, "seq"))}
    return _model(g, inputs, {
        x: ("f32", (BATCH, "seq", width)), pooled: ("f32", (BATCH, width)), mean: ("f32", (BATCH, width)),
    })  # fmt: skip


def lstm(width: int = 16, hidden: int = 32) -> onnx.ModelProto:
    """An LSTM in both directions, its last states, and its output at the last place."""
    g = Graph()
    weights = [g.weight(2, 4 * hidden, n, fan=n) for n in (width, hidden)]
    bias = g.constant(0.1 * g.rng.normal(size=(2, 8 * hidden)))
    g.nodes.append(
        helper.make_node(
            "LSTM", ["x", *weights, bias], ["y", "y_h", "y_c"], direction="bidirectional", hidden_size=hidden
        )
    )
    last = g.node("Gather", "y", g.constant(-1, np.int64), axis=0)
    mean = g.node("ReduceMean", "y", g.constant([0], np.int64), keepdims=0)
    state: Sequence[int | str] = (2, BATCH, hidden)
    return _model(g, {"x": ("f32", ("seq", BATCH, width))}, {
        "y": ("f32", ("seq", *state)), "y_h": ("f32", state), "y_c": ("f32", state), last: ("f32", state),
        mean: ("f32", state),
    })  # fmt: skip


def conv(channels: int = 16, classes: int = 10) -> onnx.ModelProto:
    """Convolutions and pools over time: padded, strided, dilated, depthwise; global pools, and where the peak is."""
    g, c = Graph(), channels

    def convolved(x: str, taken: int, made: int, kernel: int, groups: int = 1, **attributes: Any) -> str:
        pad = attributes.get("dilations", [1])[0] * (kernel // 2)
        weight = g.weight(made, taken // groups, kernel, fan=taken // groups * kernel)
        return g.node(
            "Conv", x, weight, g.constant(0.1 * g.rng.normal(size=made)), group=groups, pads=[pad, pad], **attributes
        )

    x = g.node("Relu", convolved("x", 4, c, 5))
    norms = [g.constant(g.rng.uniform(0.5, 1.5, c)) for _ in range(4)]
    x = g.node("BatchNormalization", x, *norms)
    x = g.node("MaxPool", x, kernel_shape=[3], strides=[2], pads=[1, 1])
    x = g.node("Add", x, convolved(convolved(x, c, c, 3, groups=c), c, c, 1))
    x = g.node("Relu", convolved(x, c, c, 3, dilations=[2]))
    x = g.node("AveragePool", x, kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=0)
    x = g.node("Relu", convolved(x, c, c, 3, strides=[2]))
    peak = g.node("ArgMax", x, axis=2, keepdims=0)
    both = g.node("Concat", g.node("GlobalAveragePool", x), g.node("GlobalMaxPool", x), axis=1)
    logits = _dense(g, g.node("Flatten", both), 2 * c, classes)
    return _model(g, {"x": ("f32", (BATCH, 4, "seq"))}, {
        logits: ("f32", (BATCH, classes)), peak: ("i64", (BATCH, c)), x: ("f32", (BATCH, c, None)),  # type: ignore[dict-item]
    })  # fmt: skip


def masked(width: int = 32, heads: int = 4) -> onnx.ModelProto:
    """Causal attention under a mask of keys; running sums, the states turned around, the largest and where they are."""
    g = Graph()
    count = g.node("Squeeze", _length(g, "x", 1))
    places = g.node("Range", g.constant(0, np.int64), count, g.constant(1, np.int64))
    later = g.node(
        "LessOrEqual",
        g.node("Unsqueeze", places, g.constant([0], np.int64)),
        g.node("Unsqueeze", places, g.constant([1], np.int64)),
    )
    allowed = g.node("And", later, g.node("Unsqueeze", "keep", g.constant([1, 2], np.int64)))
    x = g.node("Add", "x", _attention(g, _normalized(g, "x", width), _barred(g, allowed), heads, width))
    running = g.node("CumSum", x, g.constant(1, np.int64))
    norm = g.node("ReduceL2", x, g.constant([2], np.int64), keepdims=0)
    best = g.node("ArgMax", norm, axis=1, keepdims=0)
    low, high = g.constant([-1], np.int64), g.constant([-(2**62)], np.int64)
    turned = g.node("Slice", x, low, high, g.constant([1], np.int64), g.constant([-1], np.int64))
    joined = g.node("Concat", x, turned, axis=1)
    spread = g.node("Sub", g.node("ReduceMax", norm, keepdims=0), g.node("ReduceMin", norm, keepdims=0))
    inputs: Ports = {"x": ("f32", (BATCH, "seq", width)), "keep": ("i1", (BATCH, "seq"))}
    return _model(g, inputs, {
        running: ("f32", (BATCH, "seq", width)), best: ("i64", (BATCH,)), joined: ("f32", (BATCH, None, width)),
        spread: ("f32", ()),
    })  # type: ignore[dict-item]  # fmt: skip


@dataclass(frozen=True)
class LengthModel:
    """A model, and how its inputs are made for a length."""

    make: Callable[[], onnx.ModelProto]
    what: str
    inputs: Callable[[np.random.Generator, int], list[Array]]


def _text(rng: np.random.Generator, length: int) -> list[Array]:
    mask = np.arange(length) < rng.integers(1, length + 1, (BATCH, 1))
    return [rng.integers(0, 100, (BATCH, length)), mask.astype(np.int64)]


def _series(rng: np.random.Generator, length: int) -> list[Array]:
    return [rng.normal(size=(length, BATCH, 16)).astype(np.float32)]


def _signal(rng: np.random.Generator, length: int) -> list[Array]:
    return [rng.normal(size=(BATCH, 4, length)).astype(np.float32)]


def _states(rng: np.random.Generator, length: int) -> list[Array]:
    keep = rng.random((BATCH, length)) < 0.8
    keep[:, 0] = True
    return [rng.normal(size=(BATCH, length, 32)).astype(np.float32), keep]


MODELS: Mapping[str, LengthModel] = {
    "bert": LengthModel(bert, "tokens with a mask through two encoder layers, pooled", _text),
    "lstm": LengthModel(lstm, "an LSTM in both directions", _series),
    "conv": LengthModel(conv, "1-D convolutions, pools, argmax", _signal),
    "masked": LengthModel(masked, "causal attention with a mask of keys, CumSum, ArgMax, reversal", _states),
}
"""Name -> model."""
