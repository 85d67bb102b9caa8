"""Generated ONNX programs: a chain of small operations, attention blocks of symbolic sizes, large dense layers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

WIDTH = 64  # of the chain's vectors
BATCH = 8
OPSET = 20

# One period of the chain. No two neighbours fold into one, and values stay near 1.
PERIOD = ("Mul", "Add", "Tanh", "Sub", "Sigmoid", "Mul", "Add", "Max", "Neg", "MatMul")
SHARED_WEIGHTS = 31  # a prime, so that every one is used


def chain(path: Path, operations: int) -> None:
    """Write a model of `operations` nodes: element-wise ones with vectors, and a matrix product in every ten."""
    rng = np.random.default_rng(0)
    weights = {f"vector_{i}": rng.uniform(0.5, 1.5, WIDTH).astype(np.float32) for i in range(SHARED_WEIGHTS)}
    matrices = rng.standard_normal((SHARED_WEIGHTS, WIDTH, WIDTH), dtype=np.float32) / np.float32(np.sqrt(WIDTH))
    weights |= {f"matrix_{i}": matrix for i, matrix in enumerate(matrices)}
    save(path, list(chain_nodes(operations)), weights, "x", f"t{operations}", (BATCH, WIDTH))


def chain_nodes(operations: int) -> Iterator[onnx.NodeProto]:
    for i in range(operations):
        op = PERIOD[i % len(PERIOD)]
        operands = ["x" if i == 0 else f"t{i}"]
        if op not in ("Tanh", "Sigmoid", "Neg"):
            operands.append(f"{'matrix' if op == 'MatMul' else 'vector'}_{i * 7 % SHARED_WEIGHTS}")
        yield helper.make_node(op, operands, [f"t{i + 1}"], name=f"{op}_{i}")


HEADS = 4
BLOCK_NODES = 41


def attention_blocks(path: Path, operations: int) -> int:
    """Write blocks of self attention as exporters with dynamic dims do: every reshape computes its target from shapes.

    Returns the number of nodes, the multiple of `BLOCK_NODES` below `operations`.
    """
    rng = np.random.default_rng(0)
    matrices = {
        name: rng.standard_normal((WIDTH, WIDTH), dtype=np.float32) / np.float32(np.sqrt(WIDTH)) for name in "qkvo"
    }
    integers = {"zero": 0, "one": 1, "heads": [HEADS], "depth": [WIDTH // HEADS], "width": [WIDTH], "axes": [0]}
    weights = matrices | {name: np.array(value, np.int64) for name, value in integers.items()}
    weights |= {"scale": np.ones(WIDTH, np.float32), "bias": np.zeros(WIDTH, np.float32)}
    blocks = operations // BLOCK_NODES
    nodes = [node for i in range(blocks) for node in _block(i)]
    assert len(nodes) == blocks * BLOCK_NODES
    save(path, nodes, weights, "h0", f"h{blocks}", ("batch", "sequence", WIDTH))
    return len(nodes)


def _block(i: int) -> Iterator[onnx.NodeProto]:
    def node(op: str, operands: str, result: str, **attributes: Any) -> onnx.NodeProto:
        # names of values in a block begin with a dot, those of weights do not
        names = [name.replace(".", f"b{i}.") for name in (*operands.split(), result)]
        return helper.make_node(op, names[:-1], names[-1:], name=names[-1].replace(".", "/"), **attributes)

    def sizes(source: str, label: str) -> Iterator[onnx.NodeProto]:
        yield node("Shape", source, f".{label}.shape")
        for axis, which in (("batch", "zero"), ("sequence", "one")):
            yield node("Gather", f".{label}.shape {which}", f".{label}.{axis}.size", axis=0)
            yield node("Unsqueeze", f".{label}.{axis}.size axes", f".{label}.{axis}")

    yield node("LayerNormalization", f"h{i} scale bias", ".normal", axis=-1)
    for part in "qkv":
        yield node("MatMul", f".normal {part}", f".{part}.flat")
        yield from sizes(".normal" if part == "q" else f".{part}.flat", part)
        yield node("Concat", f".{part}.batch .{part}.sequence heads depth", f".{part}.target", axis=0)
        yield node("Reshape", f".{part}.flat .{part}.target", f".{part}.heads")
        perm = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
        yield node("Transpose", f".{part}.heads", f".{part}", perm=perm)
    yield node("MatMul", ".q .k", ".scores")
    yield node("Softmax", ".scores", ".weights", axis=-1)
    yield node("MatMul", ".weights .v", ".mixed")
    yield node("Transpose", ".mixed", ".back", perm=[0, 2, 1, 3])
    yield from sizes(f"h{i}", "o")
    yield node("Concat", ".o.batch .o.sequence width", ".o.target", axis=0)
    yield node("Reshape", ".back .o.target", ".o.flat")
    yield node("MatMul", ".o.flat o", ".projected")
    yield node("Add", f"h{i} .projected", f"h{i + 1}")


def dense_stack(path: Path, megabytes: int, external: bool) -> float:
    """Write an MLP of about `megabytes` of float32 weights, inside the file or beside it; returns how many."""
    width = 2048
    layers = max(1, round(megabytes * 1e6 / (4 * width * width)))
    rng = np.random.default_rng(0)
    weights = {
        f"w{i}": rng.standard_normal((width, width), dtype=np.float32) / np.float32(np.sqrt(width))
        for i in range(layers)
    }
    nodes: list[onnx.NodeProto] = []
    for i in range(layers):
        nodes.append(helper.make_node("MatMul", ["x" if i == 0 else f"h{i}", f"w{i}"], [f"m{i}"], name=f"dense_{i}"))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"h{i + 1}"], name=f"relu_{i}"))
    save(path, nodes, weights, "x", f"h{layers}", (1, width), external)
    return sum(weight.nbytes for weight in weights.values()) / 1e6


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    weights: dict[str, np.ndarray],
    source: str,
    result: str,
    shape: tuple[int | str, ...],
    external: bool = False,
) -> None:
    """Write a model with one float32 input and one output of the same shape."""
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info(source, onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.save_model(model, path, save_as_external_data=external, location=f"{path.name}.data")
