"""Single ONNX operators at the sizes of real models: what models are made of, each by itself.

A case is ONNX text with the result `y`; its inputs and initializers are drawn from one seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
RANDOM = np.random.default_rng(0)


@dataclass
class Case:
    """Nodes as text, what they take, and what is known when compiling."""

    text: str
    inputs: Arrays
    weights: Arrays = field(default_factory=dict)
    opset: int = 20

    def model(self) -> onnx.ModelProto:
        """The model, with all shapes inferred."""
        elements = {"f": "float", "i": "int64", "b": "bool"}
        inputs = ", ".join(
            f"{elements[x.dtype.kind]}[{','.join(map(str, x.shape))}] {name}" for name, x in self.inputs.items()
        )
        head = f'<ir_version: 9, opset_import: ["" : {self.opset}]>'
        model = onnx.parser.parse_model(f"{head} g ({inputs}) => (float y) {{ {self.text} }}")
        model.graph.initializer.extend(numpy_helper.from_array(x, name) for name, x in self.weights.items())
        del model.graph.output[:]
        model.graph.output.append(onnx.ValueInfoProto(name="y"))
        return onnx.shape_inference.infer_shapes(model)


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def small(*shape: int) -> Array:
    """Weights with which recurrent layers forget how they began."""
    return floats(*shape) / 10


def positive(*shape: int) -> Array:
    return np.abs(floats(*shape)) + np.float32(0.1)


def below(most: int, *shape: int) -> Array:
    return RANDOM.integers(0, most, shape)


def number(*values: float) -> Array:
    """A scalar, or a vector."""
    kind = np.float32 if any(isinstance(v, float) for v in values) else np.int64
    return np.array(values[0] if len(values) == 1 else values, kind)


def list_of(*values: float) -> Array:
    return np.atleast_1d(number(*values))


def boxes(count: int, size: float) -> Array:
    corner = RANDOM.uniform(0, size, (count, 2))
    return np.concatenate([corner, corner + RANDOM.uniform(size / 10, size / 2, (count, 2))], 1).astype(np.float32)


IMAGE = (1, 64, 56, 56)


def recurrent(kind: str, gates: int, batch: int = 1, directions: int = 1, flags: str = "") -> Case:
    weights = {
        "w": small(directions, gates * 128, 64), "r": small(directions, gates * 128, 128),
        "b": small(directions, 2 * gates * 128),
    }  # fmt: skip
    outputs = "y, h, c" if kind == "LSTM" else "y, h"
    return Case(f"{outputs} = {kind}<hidden_size = 128{flags}>(x, w, r, b)", {"x": floats(64, batch, 64)}, weights, 14)


def convolution(flags: str, image: tuple[int, ...], weight: tuple[int, ...], kind: str = "Conv") -> Case:
    return Case(f"y = {kind}<{flags}>(x, w)", {"x": floats(*image)}, {"w": floats(*weight)})


def reduction(kind: str, shape: tuple[int, ...], *axes: int) -> Case:
    return Case(f"y = {kind}<keepdims = 0>(x, a)", {"x": floats(*shape)}, {"a": list_of(*axes)})


def of(text: str, *shape: int, **weights: Array) -> Case:
    """One input of a shape."""
    return Case(f"y = {text}", {"x": floats(*shape)}, weights)


CASES: dict[str, Case] = {
    "conv 3d": convolution("pads = [1, 1, 1, 1, 1, 1]", (1, 16, 16, 32, 32), (32, 16, 3, 3, 3)),
    "conv 1d": convolution("pads = [4, 4]", (1, 64, 2000), (64, 64, 9)),
    "conv 1d depthwise": convolution("pads = [7, 7], group = 64", (1, 64, 2000), (64, 1, 15)),
    "conv 5x5 by 2": convolution("pads = [2, 2, 2, 2], strides = [2, 2]", (1, 32, 112, 112), (64, 32, 5, 5)),
    "conv dilated": convolution("pads = [4, 4, 4, 4], dilations = [4, 4]", IMAGE, (64, 64, 3, 3)),
    "conv in 32 groups": convolution("pads = [1, 1, 1, 1], group = 32", (1, 128, 56, 56), (128, 4, 3, 3)),
    "conv 1x7": convolution("pads = [0, 3, 0, 3]", (1, 64, 35, 35), (64, 64, 1, 7)),
    "conv of odd channels": convolution("pads = [1, 1, 1, 1]", (1, 37, 45, 45), (51, 37, 3, 3)),
    "transposed 4x4 by 2": convolution(
        "pads = [1, 1, 1, 1], strides = [2, 2]", (1, 64, 28, 28), (64, 64, 4, 4), "ConvTranspose"
    ),
    "transposed 2x2 by 2": convolution("strides = [2, 2]", (1, 128, 28, 28), (128, 64, 2, 2), "ConvTranspose"),
    "transposed 1d": convolution("strides = [4], pads = [2, 2]", (1, 128, 256), (128, 64, 8), "ConvTranspose"),
    "max pool 3x3 by 2": of(
        "MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(x)", 1, 64, 112, 112
    ),
    "max pool 5x5": of("MaxPool<kernel_shape = [5, 5], pads = [2, 2, 2, 2]>(x)", 1, 128, 20, 20),
    "average pool": of("AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)", *IMAGE),
    "global pool": of("GlobalAveragePool(x)", 1, 512, 14, 14),
    "batch norm": of(
        "BatchNormalization(x, s, b, m, v)", *IMAGE, s=floats(64), b=floats(64), m=floats(64), v=positive(64)
    ),
    "instance norm": of("InstanceNormalization(x, s, b)", *IMAGE, s=floats(64), b=floats(64)),
    "layer norm": of("LayerNormalization(x, s, b)", 512, 768, s=floats(768), b=floats(768)),
    "local response norm": of("LRN<size = 5>(x)", *IMAGE),
    "softmax": of("Softmax(x)", 12, 256, 256),
    "softmax of channels": of("Softmax<axis = 1>(x)", 1, 21, 128, 128),
    "log softmax": of("LogSoftmax(x)", 64, 30000),
    "arg max of channels": of("ArgMax<axis = 1>(x)", 1, 21, 128, 128),
    "arg max": of("ArgMax<axis = -1>(x)", 64, 10000),
    "top 300 of 25200": Case("y, i = TopK(x, k)", {"x": floats(1, 25200)}, {"k": list_of(300)}),
    "top 5 of 1000": Case("y, i = TopK(x, k)", {"x": floats(64, 1000)}, {"k": list_of(5)}),
    "cumulative sum": of("CumSum(x, a)", 64, 4096, a=number(1)),
    "cumulative sum of rows": of("CumSum(x, a)", 4096, 64, a=number(0)),
    "gather rows": Case("y = Gather(w, x)", {"x": below(30000, 8, 128)}, {"w": floats(30000, 256)}),
    "gather columns": Case("y = Gather<axis = 1>(w, x)", {"x": below(256, 128)}, {"w": floats(1000, 256)}),
    "gather elements": Case("y = GatherElements<axis = 1>(w, x)", {"w": floats(512, 512), "x": below(512, 512, 128)}),
    "scatter": Case(
        "y = ScatterND(w, x, u)", {"w": floats(1000, 256), "x": below(1000, 256, 1), "u": floats(256, 256)}
    ),
    "one hot": Case("y = OneHot(x, d, v)", {"x": below(100, 512)}, {"d": list_of(1000), "v": list_of(0.0, 1.0)}),
    "resize nearest": of('Resize<mode = "nearest">(x, , s)', 1, 64, 40, 40, s=list_of(1.0, 1, 2, 2)),
    "resize linear": of('Resize<mode = "linear">(x, , s)', 1, 64, 40, 40, s=list_of(1.0, 1, 2, 2)),
    "resize cubic": of('Resize<mode = "cubic">(x, , s)', 1, 3, 64, 64, s=list_of(1.0, 1, 4, 4)),
    "grid sample": Case(
        "y = GridSample(x, g)",
        {"x": floats(1, 32, 64, 64), "g": RANDOM.uniform(-1, 1, (1, 64, 64, 2)).astype(np.float32)},
    ),
    "regions": Case(
        "y = RoiAlign<output_height = 7, output_width = 7, sampling_ratio = 2, spatial_scale = 0.25>(x, r, b)",
        {"x": floats(1, 64, 50, 50), "r": boxes(100, 100), "b": below(1, 100)},
    ),
    "suppression": Case(
        "y = NonMaxSuppression(x, s, m, t, u)",
        {"x": boxes(1000, 1)[None], "s": RANDOM.uniform(0, 1, (1, 4, 1000)).astype(np.float32)},
        {"m": list_of(50), "t": list_of(0.5), "u": list_of(0.3)},
    ),
    "depth to space": of("DepthToSpace<blocksize = 2>(x)", 1, 128, 64, 64),
    "space to depth": of("SpaceToDepth<blocksize = 2>(x)", 1, 32, 128, 128),
    "channels last": of("Transpose<perm = [0, 2, 3, 1]>(x)", *IMAGE),
    "transpose": of("Transpose<perm = [1, 0]>(x)", 1024, 1024),
    "transpose heads": of("Transpose<perm = [0, 2, 1, 3]>(x)", 8, 128, 12, 64),
    "pad": of("Pad(x, p)", 1, 32, 64, 64, p=list_of(0, 0, 3, 3, 0, 0, 3, 3)),
    "pad by reflection": of('Pad<mode = "reflect">(x, p)', 1, 32, 64, 64, p=list_of(0, 0, 3, 3, 0, 0, 3, 3)),
    "tile": of("Tile(x, r)", 16, 64, 64, r=list_of(1, 2, 2)),
    "concatenate channels": Case(
        "y = Concat<axis = 1>(x, z)", {"x": floats(*IMAGE), "z": floats(1, 32, 56, 56)}
    ),
    "gated": Case("a, b = Split<axis = 1, num_outputs = 2>(x) s = Sigmoid(a) y = Mul(s, b)", {"x": floats(64, 2048)}),
    "where": Case("c = Less(x, z) y = Where(c, x, z)", {"x": floats(1024, 1024), "z": floats(1024)}),
    "products of heads": Case(
        'y = Einsum<equation = "bhqd,bhkd->bhqk">(x, z)', {"x": floats(2, 8, 128, 64), "z": floats(2, 8, 128, 64)}
    ),
    "matmul": Case("y = MatMul(x, z)", {"x": floats(384, 384), "z": floats(384, 384)}),
    "matmul of many rows": of("MatMul(x, z)", 4096, 32, z=floats(32, 32)),
    "matmul of small ones": Case("y = MatMul(x, z)", {"x": floats(512, 9, 9), "z": floats(512, 9, 9)}),
    "vector by matrix": of("MatMul(x, z)", 1, 2048, z=floats(2048, 1000)),
    "gemm": of("Gemm<transB = 1>(x, z, b)", 32, 1024, z=floats(1000, 1024), b=floats(1000)),
    "quantized matmul": Case(
        "a, s, z = DynamicQuantizeLinear(x) m = MatMulInteger(a, w, z) c = Cast<to = 1>(m) y = Mul(c, s)",
        {"x": floats(128, 512)},
        {"w": RANDOM.integers(-63, 64, (512, 512)).astype(np.int8)},  # of larger ones, AVX2 makes ONNX Runtime saturate
    ),
    "mean of a middle axis": reduction("ReduceMean", (32, 128, 256), 1),
    "mean of space": reduction("ReduceMean", (8, 64, 28, 28), 2, 3),
    "sum of columns": reduction("ReduceSum", (2048, 512), 0),
    "sum": Case("y = ReduceSum<keepdims = 0>(x, a)", {"x": positive(1024, 1024)}, {"a": list_of(0, 1)}),
    "maximum of rows": reduction("ReduceMax", (1024, 1024), 1),
    "log of summed exp": reduction("ReduceLogSumExp", (1024, 512), 1),
    "lstm": recurrent("LSTM", 4),
    "lstm both ways": recurrent("LSTM", 4, directions=2, flags=', direction = "bidirectional"'),
    "gru": recurrent("GRU", 3, flags=", linear_before_reset = 1"),
    "gru of a batch": recurrent("GRU", 3, batch=8),
    "rnn": recurrent("RNN", 1),
    "fourier": of("DFT(x, , a)", 8, 512, 1, a=number(1)),
    "quantize": Case(
        "a = QuantizeLinear(x, s, z) y = DequantizeLinear(a, s, z)",
        {"x": floats(512, 1024)},
        {"s": number(0.05), "z": np.array(0, np.int8)},
    ),
    "power": Case("y = Pow(x, p)", {"x": positive(512, 1024)}, {"p": number(1.7)}),
    "square": of("Pow(x, p)", 512, 1024, p=number(2.0)),
    "cast to half": of("Cast<to = 10>(x)", 512, 1024),
    "remainder": Case("y = Mod(x, z)", {"x": below(1000, 512, 1024), "z": below(10, 1) + 3}),
} | {
    name.lower(): Case(f"y = {name}(x)", {"x": (positive if name in ("Log", "Sqrt") else floats)(512, 1024)})
    for name in (
        "Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Erf", "Gelu", "Softplus", "Mish", "Elu", "HardSwish", "Sin",
        "Tan", "Atan", "Sinh", "Floor", "Round",
    )
}  # fmt: skip
