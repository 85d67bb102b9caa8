"""The same small networks in JAX, in torch and as ONNX models, with the same weights.

Each door has a function per network that gives a source for `gcomp.import_model`. ONNX models are built by hand of the
operators that exporters write.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import lax
from onnx import helper, numpy_helper

Arrays = Mapping[str, np.ndarray]

EPSILON = 1e-5


def _normal(*shape: int) -> np.ndarray:
    return (np.random.default_rng([3, *shape]).standard_normal(shape) * 0.5).astype(np.float32)


@dataclass(frozen=True)
class Network:
    """Inputs by name, weights by name, and the network by door."""

    inputs: Arrays
    weights: Arrays
    jax: Callable[..., Any]
    """A function of the inputs and the weights."""
    torch: Callable[[Any, Arrays], Any]
    """Of the `torch` package and the weights as tensors: a module."""
    onnx: Callable[[Graph], str]
    """Adds nodes to a graph; the output's name."""

    def function(self, *inputs: Any) -> Any:
        """The JAX function, of the inputs alone."""
        taken = inspect.signature(self.jax).parameters
        return self.jax(*inputs, **{n: jnp.asarray(w) for n, w in self.weights.items() if n in taken})

    def sources(self, torch: Any) -> dict[str, tuple[Any, ...]]:
        """Door -> the arguments of `gcomp.import_model`."""
        values = list(self.inputs.values())
        weights = {n: torch.from_numpy(np.asarray(w)) for n, w in self.weights.items()}
        tensors = [torch.from_numpy(x) for x in values]
        return {
            "JAX": (self.function, *values),
            "torch": (self.torch(torch, weights).eval(), *tensors),
            "ONNX": (onnx_model(self),),
        }


class Graph:
    """Nodes of an ONNX model: a call adds one, and gives its output's name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def ints(self, *values: int) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        """A Split, which has several outputs."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(len(sizes))]
        self.nodes.append(helper.make_node("Split", [x, self.ints(*sizes)], names, axis=axis))
        return names


def onnx_model(network: Network) -> onnx.ModelProto:
    """The ONNX model of a network."""
    graph = Graph()
    result = network.onnx(graph)
    graph.nodes.append(helper.make_node("Identity", [result], ["result"]))
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in network.inputs.items()
    ]
    shape = jax.eval_shape(network.function, *network.inputs.values()).shape
    output = helper.make_tensor_value_info("result", onnx.TensorProto.FLOAT, shape)
    stored = [*graph.constants, *(numpy_helper.from_array(np.asarray(x), n) for n, x in network.weights.items())]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "network", inputs, [output], stored),
        opset_imports=[helper.make_opsetid("", 21)],
    )
    onnx.checker.check_model(model)
    return model


# ---- a multilayer perceptron ----------------------------------------------------------------------------------------


def mlp_jax(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


def mlp_torch(torch: Any, w: Arrays) -> Any:
    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.relu(x @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]

    return Net()


def mlp_onnx(g: Graph) -> str:
    hidden = g("Relu", g("Add", g("MatMul", "x", "w1"), "b1"))
    return g("Add", g("MatMul", hidden, "w2"), "b2")


# ---- a convolutional network ----------------------------------------------------------------------------------------


def cnn_jax(x: Any, k1: Any, k2: Any, w: Any) -> Any:
    numbers = ("NCHW", "OIHW", "NCHW")
    for k in (k1, k2):
        x = jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), [(1, 1), (1, 1)], dimension_numbers=numbers))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(2, -1) @ w


def cnn_torch(torch: Any, w: Arrays) -> Any:
    F = torch.nn.functional

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            for k in ("k1", "k2"):
                x = F.max_pool2d(F.relu(F.conv2d(x, w[k], padding=1)), 2)
            return x.flatten(1) @ w["w"]

    return Net()


def cnn_onnx(g: Graph) -> str:
    x = "x"
    for k in ("k1", "k2"):
        x = g("MaxPool", g("Relu", g("Conv", x, k, pads=[1] * 4)), kernel_shape=[2, 2], strides=[2, 2])
    return g("MatMul", g("Flatten", x), "w")


# ---- a norm and attention -------------------------------------------------------------------------------------------


def attention_jax(x: Any, scale: Any, bias: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    y = (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + EPSILON) * scale + bias
    q, k, v = ((y @ w).reshape(2, 5, 2, 4).transpose(0, 2, 1, 3) for w in (wq, wk, wv))
    weights = jax.nn.softmax((q * 0.5) @ k.swapaxes(2, 3))
    return x + (weights @ v).transpose(0, 2, 1, 3).reshape(2, 5, 8) @ wo


def attention_torch(torch: Any, w: Arrays) -> Any:
    F = torch.nn.functional

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = F.layer_norm(x, (8,), w["scale"], w["bias"], EPSILON)
            q, k, v = ((y @ w[n]).reshape(2, 5, 2, 4).transpose(1, 2) for n in ("wq", "wk", "wv"))
            return x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 5, 8) @ w["wo"]

    return Net()


def attention_onnx(g: Graph) -> str:
    y = g("LayerNormalization", "x", "scale", "bias", epsilon=EPSILON)
    shape = g.ints(2, 5, 2, 4)
    q, k, v = (
        g("Transpose", g("Reshape", g("MatMul", y, w), shape), perm=perm)
        for w, perm in (("wq", [0, 2, 1, 3]), ("wk", [0, 2, 3, 1]), ("wv", [0, 2, 1, 3]))
    )
    weights = g("Softmax", g("MatMul", g("Mul", q, "half"), k), axis=-1)
    mixed = g("Transpose", g("MatMul", weights, v), perm=[0, 2, 1, 3])
    return g("Add", "x", g("MatMul", g("Reshape", mixed, g.ints(2, 5, 8)), "wo"))


# ---- a convolution and a batch norm, in inference -------------------------------------------------------------------


def batch_norm_jax(x: Any, k: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    x = lax.conv_general_dilated(x, k, (1, 1), [(1, 1), (1, 1)], dimension_numbers=("NCHW", "OIHW", "NCHW"))
    mean, variance, scale, bias = (v[:, None, None] for v in (mean, variance, scale, bias))
    return jax.nn.relu((x - mean) * lax.rsqrt(variance + EPSILON) * scale + bias)


def batch_norm_torch(torch: Any, w: Arrays) -> Any:
    F = torch.nn.functional

    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            x = F.conv2d(x, w["k"], padding=1)
            return F.relu(F.batch_norm(x, w["mean"], w["variance"], w["scale"], w["bias"], eps=EPSILON))

    return Net()


def batch_norm_onnx(g: Graph) -> str:
    x = g("Conv", "x", "k", pads=[1] * 4)
    return g("Relu", g("BatchNormalization", x, "scale", "bias", "mean", "variance", epsilon=EPSILON))


# ---- a GRU cell -----------------------------------------------------------------------------------------------------


def gru_jax(x: Any, h: Any, wx: Any, wh: Any) -> Any:
    xr, xz, xn = jnp.split(x @ wx, 3, 1)
    hr, hz, hn = jnp.split(h @ wh, 3, 1)
    z = jax.nn.sigmoid(xz + hz)
    return (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn) + z * h


def gru_torch(torch: Any, w: Arrays) -> Any:
    class Net(torch.nn.Module):
        def forward(self, x: Any, h: Any) -> Any:
            xr, xz, xn = (x @ w["wx"]).chunk(3, 1)
            hr, hz, hn = (h @ w["wh"]).chunk(3, 1)
            z = torch.sigmoid(xz + hz)
            return (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h

    return Net()


def gru_onnx(g: Graph) -> str:
    xr, xz, xn = g.split(g("MatMul", "x", "wx"), [4] * 3, 1)
    hr, hz, hn = g.split(g("MatMul", "h", "wh"), [4] * 3, 1)
    z = g("Sigmoid", g("Add", xz, hz))
    new = g("Tanh", g("Add", xn, g("Mul", g("Sigmoid", g("Add", xr, hr)), hn)))
    return g("Add", g("Mul", g("Sub", "one", z), new), g("Mul", z, "h"))


# ---- an embedding and a softmax head --------------------------------------------------------------------------------


def head_jax(tokens: Any, embedding: Any, w: Any) -> Any:
    return jax.nn.softmax(embedding[tokens] @ w)


def head_torch(torch: Any, w: Arrays) -> Any:
    F = torch.nn.functional

    class Net(torch.nn.Module):
        def forward(self, tokens: Any) -> Any:
            return F.softmax(F.embedding(tokens, w["embedding"]) @ w["w"], -1)

    return Net()


def head_onnx(g: Graph) -> str:
    return g("Softmax", g("MatMul", g("Gather", "embedding", "tokens", axis=0), "w"), axis=-1)


NETWORKS: dict[str, Network] = {
    "MLP": Network(
        {"x": _normal(3, 4)},
        {"w1": _normal(4, 8), "b1": _normal(8), "w2": _normal(8, 2), "b2": _normal(2)},
        mlp_jax, mlp_torch, mlp_onnx,
    ),
    "CNN": Network(
        {"x": _normal(2, 3, 8, 8)},
        {"k1": _normal(4, 3, 3, 3), "k2": _normal(5, 4, 3, 3), "w": _normal(20, 6)},
        cnn_jax, cnn_torch, cnn_onnx,
    ),
    "attention": Network(
        {"x": _normal(2, 5, 8)},
        {"scale": _normal(8), "bias": _normal(8), "half": np.float32(0.5)}
        | {n: _normal(8, 8) + i for i, n in enumerate(("wq", "wk", "wv", "wo"))},
        attention_jax, attention_torch, attention_onnx,
    ),
    "batch norm": Network(
        {"x": _normal(2, 3, 6, 6)},
        {"k": _normal(4, 3, 3, 3), **{n: _normal(4) for n in ("scale", "bias", "mean")}, "variance": _normal(4) ** 2},
        batch_norm_jax, batch_norm_torch, batch_norm_onnx,
    ),
    "GRU cell": Network(
        {"x": _normal(3, 4), "h": _normal(3, 4)},
        {"wx": _normal(4, 12), "wh": _normal(4, 12) + 0.1, "one": np.float32(1)},
        gru_jax, gru_torch, gru_onnx,
    ),
    "embedding": Network(
        {"tokens": np.array([[1, 5, 2], [0, 6, 6]], np.int32)},
        {"embedding": _normal(7, 4), "w": _normal(4, 7)},
        head_jax, head_torch, head_onnx,
    ),
}  # fmt: skip
