"""ONNX models built of nodes, without a framework: random weights from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Shape = Sequence[int | str]
OPSET = 21


class Graph:
    """Nodes of an ONNX model. A call adds one, and gives the name of what it computes."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        made = helper.make_node(operator, inputs, [name], name=f"{operator}_{len(self.nodes)}", domain=domain)
        made.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(made)
        return name

    def several(self, operator: str, *inputs: str, count: int, domain: str = "", **attributes: Any) -> list[str]:
        """A node with several results."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        made = helper.make_node(operator, inputs, names, name=f"{operator}_{len(self.nodes)}", domain=domain)
        made.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self.nodes.append(made)
        return names

    # ---- constants ----

    def constant(self, value: Array) -> str:
        """An initializer."""
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, *values: int) -> str:
        """A list of i64."""
        return self.constant(np.array(values, np.int64))

    def number(self, value: float) -> str:
        """An f32 of rank 0."""
        return self.constant(np.array(value, np.float32))

    def weight(self, *shape: int, scale: float | None = None, around: float = 0.0) -> str:
        """Normal f32 numbers; by default they keep the scale of what they are multiplied with."""
        spread = max(1, int(np.prod(shape[:-1]))) ** -0.5 if scale is None else scale
        return self.constant((around + spread * self.random.standard_normal(shape)).astype(np.float32))

    # ---- layers ----

    def dense(self, x: str, width: int, out: int) -> str:
        """A product with a matrix, and a bias."""
        return self("Add", self("MatMul", x, self.weight(width, out)), self.weight(out, scale=0.1))

    def norm(self, x: str, width: int) -> str:
        """Layer normalization as exporters write it out."""
        centred = self("Sub", x, self("ReduceMean", x, self.ints(-1)))
        variance = self("ReduceMean", self("Pow", centred, self.number(2.0)), self.ints(-1))
        scaled = self("Div", centred, self("Sqrt", self("Add", variance, self.number(1e-5))))
        weighted = self("Mul", scaled, self.weight(width, scale=0.1, around=1.0))
        return self("Add", weighted, self.weight(width, scale=0.1))

    def gelu(self, x: str) -> str:
        """The exact GELU, written out."""
        error = self("Erf", self("Div", x, self.number(2.0**0.5)))
        return self("Mul", self("Mul", x, self("Add", error, self.number(1.0))), self.number(0.5))

    def conv(self, x: str, inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> str:
        """A convolution and its batch normalization."""
        kernel = self.weight(outputs, inputs // groups, size, size, scale=(2 * groups / (inputs * size**2)) ** 0.5)
        pads, strides = [size // 2] * 4, [stride] * 2
        y = self("Conv", x, kernel, kernel_shape=[size] * 2, pads=pads, strides=strides, group=groups)
        scale, bias, mean = (self.weight(outputs, scale=0.1, around=a) for a in (1.0, 0.0, 0.0))
        return self("BatchNormalization", y, scale, bias, mean, self.weight(outputs, scale=0.1, around=2.0))

    def size_of(self, x: str, axis: int) -> str:
        """A dim as a list of one, in the way exporters with dynamic dims read it."""
        return self("Unsqueeze", self("Gather", self("Shape", x), self.constant(np.array(axis))), self.ints(0))

    def heads(self, x: str, heads: int, depth: int) -> str:
        """[batch, seq, heads * depth] -> [batch, heads, seq, depth]."""
        target = self("Concat", self.size_of(x, 0), self.size_of(x, 1), self.ints(heads), self.ints(depth), axis=0)
        return self("Transpose", self("Reshape", x, target), perm=[0, 2, 1, 3])

    def joined(self, x: str, width: int) -> str:
        """The opposite of `heads`."""
        back = self("Transpose", x, perm=[0, 2, 1, 3])
        target = self("Concat", self.size_of(back, 0), self.size_of(back, 1), self.ints(width), axis=0)
        return self("Reshape", back, target)

    def attention(self, x: str, width: int, heads: int, bias: str = "", scaled: bool = True) -> str:
        """Self-attention over [batch, seq, width]; `bias` is added to the scores."""
        depth = width // heads
        q, k, v = (self.heads(self.dense(x, width, width), heads, depth) for _ in range(3))
        scores = self("MatMul", q, self("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self("Div", scores, self.number(depth**0.5)) if scaled else scores
        weights = self("Softmax", self("Add", scores, bias) if bias else scores, axis=-1)
        return self.dense(self.joined(self("MatMul", weights, v), width), width, width)

    # ---- the model ----

    def model(
        self, inputs: Mapping[str, tuple[str, Shape]], outputs: Mapping[str, tuple[str, Shape]], opset: int = OPSET,
        domains: Mapping[str, int] | None = None,
    ) -> onnx.ModelProto:  # fmt: skip
        """A model of inputs and outputs: name -> element type (as NumPy has it) and shape."""
        given = [_value(name, *spec) for name, spec in inputs.items()]
        results = [_value(name, *spec) for name, spec in outputs.items()]
        graph = helper.make_graph(self.nodes, "model", given, results, self.constants)
        sets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in (domains or {}).items())]
        return helper.make_model(graph, opset_imports=sets, ir_version=10)


def _value(name: str, dtype: str, shape: Shape) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) if dtype != "float32" else TensorProto.FLOAT
    return helper.make_tensor_value_info(name, kind, shape)


__all__ = ["Graph"]
