"""Models of one node of ai.onnx.ml, random trees, and what others compute with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from gcomp.frontends.onnx import import_onnx
from gcomp.reference.interpreter import interpret

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
CLASSIFIED = {"Y": INT64, "Z": FLOAT}


def ml_model(
    op: str, inputs: Sequence[Any], outputs: Mapping[str, int], version: int = 3, rows: bool = True, **attributes: Any
) -> onnx.ModelProto:
    """A model of one node. Inputs are like given arrays, their first dim symbolic if `rows`."""
    names = [f"X{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, list(outputs), domain="ai.onnx.ml", **attributes)
    given = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype), ["N", *x.shape[1:]] if rows and x.ndim else list(x.shape)
        )
        for name, x in zip(names, inputs, strict=True)
    ]
    taken = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    graph = helper.make_graph([node], "g", given, taken)
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def ours(model: onnx.ModelProto, *inputs: Any) -> list[Any]:
    """What the imported program means."""
    return interpret(import_onnx(model), [np.asarray(x) for x in inputs])


def runtimes(model: onnx.ModelProto, *inputs: Any) -> list[Any]:
    """What ONNX Runtime computes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {f"X{i}": x for i, x in enumerate(inputs)})


def agree(model: onnx.ModelProto, *inputs: Any, rtol: float = 0.0) -> None:
    """Assert that both give the same, up to a relative error (of the largest number) in floats."""
    for got, want in zip(ours(model, *inputs), runtimes(model, *inputs), strict=True):
        close(got, want, rtol)


def close(got: Any, want: Any, rtol: float = 0.0) -> None:
    """Assert equal dtypes, shapes, NaNs and infinities, and numbers up to an error relative to the largest."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    finite = np.isfinite(want)
    assert np.array_equal(np.where(finite, 0, got), np.where(finite, 0, want), equal_nan=True)
    size = np.abs(want[finite]).max(initial=1e-30)
    assert np.abs(got[finite].astype(np.float64) - want[finite]).max(initial=0) <= rtol * size


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def random_trees(rng: Any, trees: int, features: int, modes: Sequence[str], depth: int = 4) -> dict[str, Any]:
    """The `nodes_` attributes of random, uneven trees. Thresholds and weights are multiples of 1/4: sums are exact."""
    columns = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    table: dict[str, list[Any]] = {f"nodes_{c}": [] for c in columns}
    missing = list[int]()

    def grow(tree: int, number: int, level: int) -> int:
        """Appends a node and all below it; the next free number."""
        leaf = level == depth or (level > 0 and rng.random() < 0.25)
        mode = "LEAF" if leaf else modes[rng.integers(len(modes))]
        row = (tree, number, int(rng.integers(features)), float(rng.integers(-4, 5)) / 4, mode, number + 1, 0)
        at = len(missing)
        for name, value in zip(columns, row, strict=True):
            table[f"nodes_{name}"].append(value)
        missing.append(int(rng.integers(2)))
        if leaf:
            return number + 1
        table["nodes_falsenodeids"][at] = after = grow(tree, number + 1, level + 1)
        return grow(tree, after, level + 1)

    for tree in range(trees):
        grow(tree * 3, 0, 0)
    return {**table, "nodes_missing_value_tracks_true": missing}


def random_votes(
    rng: Any, nodes: Mapping[str, Any], kind: str, targets: int, per_leaf: int = 1, by_tree: bool = False
) -> dict[str, Any]:
    """The `target_` or `class_` attributes of random votes of leaves, in multiples of 1/8."""
    votes: dict[str, list[Any]] = {f"{kind}_{c}": [] for c in ("treeids", "nodeids", "ids", "weights")}
    for tree, node, mode in zip(nodes["nodes_treeids"], nodes["nodes_nodeids"], nodes["nodes_modes"], strict=True):
        if mode != "LEAF":
            continue
        chosen = [tree // 3 % targets] if by_tree else rng.choice(targets, per_leaf, replace=False).tolist()
        for target in chosen:
            row = (tree, node, int(target), float(rng.integers(-16, 17)) / 8)
            for name, value in zip(("treeids", "nodeids", "ids", "weights"), row, strict=True):
                votes[f"{kind}_{name}"].append(value)
    return votes


def random_rows(rng: Any, count: int, features: int, special: bool = True) -> Any:
    """Rows of multiples of 1/4, some of them NaN or infinite."""
    x = (rng.integers(-6, 7, (count, features)) / 4).astype(np.float32)
    if special:
        spots = rng.random(x.shape) < 0.15
        x[spots] = rng.choice(np.float32([np.nan, np.inf, -np.inf, -0.0]), int(spots.sum()))
    return x
