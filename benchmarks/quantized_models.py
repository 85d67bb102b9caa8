"""Models that are made here, without PyTorch, and quantized by ONNX Runtime's tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


class Graph:
    """A graph under construction: nodes in order, each named after its result."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int, fan: int | None = None) -> str:
        """Random weights that keep the variance of what they multiply."""
        return self.constant(self.rng.normal(size=shape) / np.sqrt(fan or shape[0]))

    def model(
        self, inputs: Mapping[str, Sequence[int | str]], outputs: Mapping[str, Sequence[int | str]]
    ) -> onnx.ModelProto:
        ports = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in given.items()]
            for given in (inputs, outputs)
        ]
        graph = helper.make_graph(self.nodes, "g", ports[0], ports[1], initializer=self.weights)
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def transformer(layers: int, length: int, width: int, heads: int) -> onnx.ModelProto:
    """Encoder layers like BERT's: attention, then two dense layers of four times the width, residuals normalized."""
    g, x = Graph(), "x"

    def dense(value: str, rows: int, columns: int) -> str:
        bias = g.constant(0.1 * g.rng.normal(size=columns))
        return g.node("Add", g.node("MatMul", value, g.weight(rows, columns)), bias)

    def split(value: str, order: Sequence[int]) -> str:
        wide = g.node("Reshape", value, g.constant([1, length, heads, width // heads], np.int64))
        return g.node("Transpose", wide, perm=list(order))

    def normalized(value: str) -> str:
        return g.node("LayerNormalization", value, g.constant(np.ones(width)), g.constant(np.zeros(width)))

    for _ in range(layers):
        query, key, value = (
            split(dense(x, width, width), order) for order in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
        )
        scores = g.node("Div", g.node("MatMul", query, key), g.constant((width // heads) ** 0.5))
        heard = g.node("MatMul", g.node("Softmax", scores, axis=-1), value)
        joined = g.node("Transpose", heard, perm=[0, 2, 1, 3])
        flat = g.node("Reshape", joined, g.constant([1, length, width], np.int64))
        x = normalized(g.node("Add", x, dense(flat, width, width)))
        inner = dense(x, width, 4 * width)
        erf = g.node("Erf", g.node("Mul", inner, g.constant(0.5**0.5)))
        gelu = g.node("Mul", g.node("Mul", inner, g.constant(0.5)), g.node("Add", erf, g.constant(1.0)))
        x = normalized(g.node("Add", x, dense(gelu, 4 * width, width)))
    return g.model({"x": (1, length, width)}, {x: (1, length, width)})


def conv_net(size: int, channels: int, pool: str = "AveragePool", classes: int = 10) -> onnx.ModelProto:
    """What small image networks are made of: strided, depthwise, pointwise and dilated convolutions, pools, a head."""
    g, c = Graph(), channels

    def conv(x: str, taken: int, made: int, kernel: int, groups: int = 1, **attributes: Any) -> str:
        weight = g.weight(made, taken // groups, kernel, kernel, fan=taken // groups * kernel * kernel)
        bias, pad = g.constant(0.1 * g.rng.normal(size=made)), attributes.get("dilations", [1])[0] * (kernel // 2)
        return g.node("Conv", x, weight, bias, group=groups, pads=[pad] * 4, **attributes)

    x = g.node("Relu", conv("x", 3, c, 3, strides=[2, 2]))
    deep = g.node("Clip", conv(x, c, c, 3, groups=c), g.constant(0.0), g.constant(6.0))
    x = g.node("Add", x, conv(deep, c, c, 1))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    wide = g.node("LeakyRelu", conv(x, c, c, 3, dilations=[2, 2]), alpha=0.1)
    x = g.node("Concat", wide, g.node("Sigmoid", conv(x, c, c, 3, groups=2)), axis=1)
    x = g.node(pool, x, kernel_shape=[2, 2])
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    y = g.node("Gemm", x, g.weight(classes, 2 * c, fan=2 * c), g.constant(g.rng.normal(size=classes)), transB=1)
    return g.model({"x": (1, 3, size, size)}, {y: (1, classes)})


def lstm(length: int, width: int, hidden: int) -> onnx.ModelProto:
    """An LSTM in both directions, one sequence."""
    g = Graph()
    weights = [g.weight(2, 4 * hidden, n, fan=n) for n in (width, hidden)]
    bias = g.constant(0.1 * g.rng.normal(size=(2, 8 * hidden)))
    y = g.node("LSTM", "x", *weights, bias, direction="bidirectional", hidden_size=hidden)
    return g.model({"x": (length, 1, width)}, {y: (length, 2, 1, hidden)})


def int4_product(rows: int, inner: int, columns: int, block: int = 32) -> onnx.ModelProto:
    """MatMulNBits: weights of 4 bits, with a scale for each block."""
    g = Graph()
    packed = g.constant(g.rng.integers(0, 256, (columns, inner // block, block // 2)), np.uint8)
    scale = g.constant(g.rng.uniform(0.5, 1.5, (columns, inner // block)) / (8 * inner**0.5))
    attributes = {"K": inner, "N": columns, "bits": 4, "block_size": block}
    y = g.node("MatMulNBits", "x", packed, scale, domain="com.microsoft", **attributes)
    return g.model({"x": (rows, inner)}, {y: (rows, columns)})


class Calibration:
    """A few random inputs, for ONNX Runtime's calibration: numbers, tokens, and masks that leave nothing out."""

    def __init__(self, model: onnx.ModelProto, count: int = 4) -> None:
        rng = np.random.default_rng(1)

        def sample(port: onnx.ValueInfoProto) -> Array:
            kind = port.type.tensor_type
            shape = [d.dim_value or 1 for d in kind.shape.dim]
            if kind.elem_type == TensorProto.FLOAT:
                return rng.normal(size=shape).astype(np.float32)
            return np.ones(shape, np.int64) if "mask" in port.name else rng.integers(0, 1000, shape)

        samples = [{port.name: sample(port) for port in model.graph.input} for _ in range(count)]
        self._samples: Iterator[dict[str, Array]] = iter(samples)

    def get_next(self) -> dict[str, Array] | None:
        return next(self._samples, None)


def prepared(path: Path) -> onnx.ModelProto:
    """A model as ONNX Runtime prepares it before it is quantized: batch normalizations folded, constants computed."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    with TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.onnx"
        onnx.save(onnx.load(path), whole)  # weights that lie in another file would be looked for beside the result
        options.optimized_model_filepath = str(Path(folder) / "model.onnx")
        onnxruntime.InferenceSession(str(whole), options)
        return onnx.load(options.optimized_model_filepath)


def int4_weights(model: onnx.ModelProto, block: int = 32) -> onnx.ModelProto:
    """A model whose products by weights are MatMulNBits, by ONNX Runtime's quantizer, which takes no Gemm."""
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "Gemm" or any(a.name in ("transA", "transB") and a.i for a in node.attribute):
            nodes.append(node)
            continue
        product = f"{node.output[0]}_product"
        nodes.append(helper.make_node("MatMul", node.input[:2], [product], name=f"{node.name}_product"))
        nodes.append(helper.make_node("Add", [product, node.input[2]], node.output, name=node.name))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    quantizer = MatMulNBitsQuantizer(model, block_size=block, is_symmetric=True)
    quantizer.process()
    return quantizer.model.model


def statically_quantized(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """What onnxruntime.quantization.quantize_static makes of a model, calibrated with random inputs.

    Weights have 7 bits (`reduce_range`): with 8, ONNX Runtime saturates on CPUs without VNNI.
    """
    from onnxruntime.quantization import quantize_static

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        quantize_static(path, Path(folder) / "out.onnx", Calibration(model), reduce_range=True, **options)
        return onnx.load(Path(folder) / "out.onnx")


def dynamically_quantized(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """What onnxruntime.quantization.quantize_dynamic makes of a model, with weights of 7 bits as there."""
    from onnxruntime.quantization import quantize_dynamic

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        quantize_dynamic(path, Path(folder) / "out.onnx", reduce_range=True, **options)
        return onnx.load(Path(folder) / "out.onnx")
