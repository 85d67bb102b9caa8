"""One model in six styles: an attention classifier of sequences, with the same weights in each.

    python examples/styles/models.py     what each style computes, and the kernels that it becomes

docs/guides/static_and_dynamic.md shows these functions and says what each style is good for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import gcomp
from gcomp import ops
from gcomp.graph import Graph, Session, placeholder, variable
from gcomp.ir.kernel import LaunchOp
from gcomp.ir.program import Program
from gcomp.passes.manager import PassManager
from gcomp.passes.pipelines import KERNELS
from gcomp.passes.registry import parse_pipeline

Array = np.ndarray[Any, Any]
BATCH, LENGTH, WIDTH, HIDDEN, CLASSES = 8, 32, 64, 128, 10
SCALE = 1 / math.sqrt(WIDTH)
SHAPES = {
    "q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "up": (WIDTH, HIDDEN), "down": (HIDDEN, CLASSES),
}  # fmt: skip


def weights() -> dict[str, Array]:
    """The weights, by name."""
    random = np.random.default_rng(0)
    return {n: (random.standard_normal(s) / math.sqrt(s[0])).astype(np.float32) for n, s in SHAPES.items()}


def example() -> Array:
    """A batch of sequences: f32[8, 32, 64]."""
    return np.random.default_rng(1).standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32)


# ---- define by run ----

W = {name: ops.asarray(w) for name, w in weights().items()}


@gcomp.function
def classify(x):
    scores = (x @ W["q"]) @ ops.transpose(x @ W["k"], (0, 2, 1)) * SCALE
    seen = ops.softmax(scores, axis=-1) @ (x @ W["v"])
    return ops.relu(seen.mean(axis=1) @ W["up"]) @ W["down"]


# ---- define and run ----


def as_graph():
    with Graph() as graph:
        x = placeholder("float32", (BATCH, LENGTH, WIDTH), name="x")
        w = {name: variable(value, name=name) for name, value in weights().items()}
        scores = (x @ w["q"]) @ ops.transpose(x @ w["k"], (0, 2, 1)) * SCALE
        seen = ops.softmax(scores, axis=-1) @ (x @ w["v"])
        logits = ops.relu(seen.mean(axis=1) @ w["up"]) @ w["down"]
    return Session(graph), x, logits


# ---- JAX ----


def in_jax(x):
    import jax

    w = weights()
    scores = (x @ w["q"]) @ (x @ w["k"]).swapaxes(1, 2) * SCALE
    seen = jax.nn.softmax(scores, axis=-1) @ (x @ w["v"])
    return jax.nn.relu(seen.mean(axis=1) @ w["up"]) @ w["down"]


# ---- torch ----


def in_torch():
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.ParameterDict({n: torch.from_numpy(w) for n, w in weights().items()})

        def forward(self, x):
            scores = (x @ self.w["q"]) @ (x @ self.w["k"]).transpose(1, 2) * SCALE
            seen = torch.softmax(scores, dim=-1) @ (x @ self.w["v"])
            return torch.relu(seen.mean(dim=1) @ self.w["up"]) @ self.w["down"]

    return Classifier().eval()


# ---- ONNX ----


def in_onnx():
    import onnx

    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 21]>
        classifier (float[{BATCH}, {LENGTH}, {WIDTH}] x) => (float[{BATCH}, {CLASSES}] logits)
        <float scale = {{{SCALE}}}, int64[1] axis = {{1}}> {{
            qx = MatMul (x, q)
            kx = MatMul (x, k)
            kt = Transpose <perm = [0, 2, 1]> (kx)
            products = MatMul (qx, kt)
            scores = Mul (products, scale)
            shares = Softmax <axis = -1> (scores)
            vx = MatMul (x, v)
            seen = MatMul (shares, vx)
            pooled = ReduceMean <keepdims = 0> (seen, axis)
            raised = MatMul (pooled, up)
            active = Relu (raised)
            logits = MatMul (active, down)
        }}""")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(w, n) for n, w in weights().items())
    return model


# ---- all of them ----


def programs() -> dict[str, Program]:
    """Style -> the program that it becomes."""
    session, _, logits = as_graph()
    return {
        "function": classify.program(example()),
        "graph": session.program(logits),
        "JAX": gcomp.import_model(in_jax, example()),
        "torch": gcomp.import_model(*_torch()),
        "ONNX": gcomp.import_model(in_onnx()),
    }


def _torch() -> tuple[Any, Any]:
    import torch

    return in_torch(), torch.from_numpy(example())


def runs() -> Mapping[str, Callable[[], Array]]:
    """Style -> a call of the model on the example."""
    x = example()
    session, placed, logits = as_graph()
    module, tensor = _torch()
    models = {"JAX": gcomp.compile(in_jax, x), "torch": gcomp.compile(module, tensor), "ONNX": gcomp.compile(in_onnx())}
    return {
        "eager": lambda: at_once(x),
        "function": lambda: np.asarray(classify(x)),
        "graph": lambda: np.asarray(session.run(logits, {placed: x})),
        **{name: lambda model=model: np.asarray(model.flat([x])[0]) for name, model in models.items()},
    }


def at_once(x: Array) -> Array:
    """The function of define by run, op by op."""
    with gcomp.eager():
        return np.asarray(classify(x))


def kernels(program: Program) -> Counter[str]:
    """The kernels that a program becomes on a GPU: their kinds, and the arithmetic in each."""
    program = program.clone()
    PassManager(parse_pipeline(KERNELS)).run(program)
    return Counter(_described(op) for op in program.ops() if isinstance(op, LaunchOp))


_MOVES = ("broadcast_in_dim", "constant", "reshape", "return", "transpose", "convert", "iota")


def _described(op: LaunchOp) -> str:
    names = [inner.name.partition(".")[2] for inner in op.block.ops]
    return f"{op.kind_name}: {', '.join(sorted(name for name in names if name not in _MOVES))}"


def main() -> None:
    """Print the results and the kernels."""
    expected = at_once(example())
    for style, run in runs().items():
        print(f"{style:9s} differs from eager by {np.abs(run() - expected).max():.1e}")
    found = {style: kernels(program) for style, program in programs().items()}
    for style, counts in found.items():
        print(f"{style:9s} {sum(counts.values())} kernels", "" if counts == found["ONNX"] else counts - found["ONNX"])
    for kernel, count in found["ONNX"].items():
        print(f"  {count} x {kernel}")


if __name__ == "__main__":
    main()
