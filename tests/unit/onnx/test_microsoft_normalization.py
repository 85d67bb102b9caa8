"""Normalizations of com.microsoft: against ONNX Runtime, and where its CPU has no kernel against their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import Array, agree, compare, compiled_agrees, interpreted, node_model, normal

DTYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}
_SKIPPED = ("y", "", "", "total")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(6))
def test_skip_layer_normalization(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    b, s, h = rng.integers(1, 5, 3)
    skip = [(b, s, h), (1, s, h), (s, h)][seed % 3]
    inputs: dict[str, Array | None] = {
        "input": normal(rng, b, s, h, dtype=dtype),
        "skip": normal(rng, *skip, dtype=dtype),
        "gamma": normal(rng, h, dtype=dtype),
        "beta": normal(rng, h, dtype=dtype) if seed % 2 else None,
        "bias": normal(rng, h, dtype=dtype) if seed < 3 else None,
    }
    agree("SkipLayerNormalization", inputs, _SKIPPED, element=DTYPES[dtype], epsilon=1e-3, tolerance=5e-3 if
          dtype == np.float16 else None)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_skip_simplified_layer_normalization(seed: int, dtype: Any) -> None:
    rng = np.random.default_rng(seed)
    b, s, h = rng.integers(1, 5, 3)
    shape = (b, s, h) if seed % 2 else (s, h)
    inputs: dict[str, Array | None] = {
        "input": normal(rng, *shape, dtype=dtype),
        "skip": normal(rng, *shape, dtype=dtype),
        "gamma": normal(rng, h, dtype=dtype),
        "bias": normal(rng, h, dtype=dtype) if seed < 2 else None,
    }
    agree("SkipSimplifiedLayerNormalization", inputs, _SKIPPED, element=DTYPES[dtype], epsilon=1e-5)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, np.float32), (np.float16, np.float16),
                                              (np.float32, np.float16), (np.float16, np.float32)])  # fmt: skip
def test_simplified_layer_normalization(dtype: Any, scale: Any) -> None:
    rng = np.random.default_rng(0)
    inputs: dict[str, Array | None] = {"x": normal(rng, 3, 2, 8, dtype=dtype), "scale": normal(rng, 8, dtype=scale)}
    options = {"domain": "", "element": DTYPES[scale], "axis": -1, "epsilon": 1e-5}
    try:
        agree("SimplifiedLayerNormalization", inputs, **options)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "NotImplemented" not in type(error).__name__:
            raise
        x, w = (np.asarray(v).astype(np.float32) for v in inputs.values())
        want = (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w).astype(scale)
        compare(interpreted(node_model("SimplifiedLayerNormalization", inputs, **options), inputs), [want])


def test_simplified_layer_normalization_gives_the_inverse_root_mean_square() -> None:
    x = normal(np.random.default_rng(0), 3, 4)
    inputs: dict[str, Array | None] = {"x": x, "scale": np.ones(4, np.float32)}
    agree("SimplifiedLayerNormalization", inputs, ("y", "inverse"), domain="", axis=1, epsilon=1e-5)


def test_layer_normalization_before_opset_17_is_onnx_runtimes() -> None:
    rng = np.random.default_rng(0)
    inputs: dict[str, Array | None] = {"x": normal(rng, 3, 4), "w": normal(rng, 4), "b": normal(rng, 4)}
    agree("LayerNormalization", inputs, domain="", axis=-1, epsilon=1e-5)


def _embeddings(seed: int, batch: int, length: int) -> dict[str, Array | None]:
    rng = np.random.default_rng(seed)
    ids: dict[str, Array | None] = {
        "ids": rng.integers(0, 7, (batch, length)).astype(np.int32),
        "segments": rng.integers(0, 2, (batch, length)).astype(np.int32) if seed % 2 else None,
        "word": normal(rng, 7, 8),
        "position": normal(rng, 9, 8),
        "segment": normal(rng, 2, 8) if seed % 2 else None,
        "gamma": normal(rng, 8),
        "beta": normal(rng, 8),
        "mask": rng.integers(0, 2, (batch, length)).astype(np.int32) if seed % 3 else None,
        "places": rng.integers(0, 9, (batch if seed % 4 == 1 else 1, length)).astype(np.int32) if seed > 1 else None,
    }
    return ids


@pytest.mark.parametrize("seed", range(6))
def test_embed_layer_normalization(seed: int) -> None:
    types = {"count": TensorProto.INT32}
    agree("EmbedLayerNormalization", _embeddings(seed, 2, 5), ("y", "count", "total"), element=types, epsilon=1e-12)


def test_embed_layer_normalization_with_symbolic_sizes() -> None:
    dims = {"ids": ["b", "s"], "mask": ["b", "s"], "segments": ["b", "s"]}
    inputs = _embeddings(1, 2, 5) | {"places": None}
    constants = ("word", "position", "segment", "gamma", "beta")
    types = {"count": TensorProto.INT32}
    model = node_model("EmbedLayerNormalization", inputs, ("y", "count"), dims, constants, types)
    other = _embeddings(1, 3, 7)
    compiled_agrees(model, [inputs, inputs | {k: other[k] for k in dims}])


def test_skip_layer_normalization_with_symbolic_sizes() -> None:
    rng = np.random.default_rng(5)
    weights = {"gamma": normal(rng, 8), "beta": normal(rng, 8)}

    def call(b: int, s: int) -> dict[str, Array | None]:
        return {"input": normal(rng, b, s, 8), "skip": normal(rng, b, s, 8), **weights}

    dims = {"input": ["b", "s", 8], "skip": ["b", "s", 8]}
    model = node_model("SkipLayerNormalization", call(1, 1), _SKIPPED, dims, tuple(weights))
    compiled_agrees(model, [call(2, 3), call(1, 5)])


def _group_norm(x: Array, gamma: Array, beta: Array, groups: int, last: bool, silu: bool) -> Array:
    x = np.moveaxis(x, 3, 1) if last else x
    n, c, h, w = x.shape
    g = x.reshape(n, groups, -1).astype(np.float64)
    y = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + 1e-5)
    y = y.reshape(n, c, h, w) * gamma[:, None, None] + beta[:, None, None]
    y = y / (1 + np.exp(-y)) if silu else y
    return (np.moveaxis(y, 1, 3) if last else y).astype(np.float32)


@pytest.mark.parametrize(("last", "silu"), [(True, True), (True, False), (False, True)])
def test_group_norms_follow_their_formula(last: bool, silu: bool) -> None:
    rng = np.random.default_rng(3)
    x = normal(rng, 2, 3, 4, 8) if last else normal(rng, 2, 8, 3, 4)
    w = {"gamma": normal(rng, 8), "beta": normal(rng, 8)}
    attributes = {"groups": 2, "activation": int(silu), "channels_last": int(last)}
    inputs: dict[str, Array | None] = {"x": x, **w}
    want = _group_norm(x, w["gamma"], w["beta"], 2, last, silu)
    compare(interpreted(node_model("GroupNorm", inputs, **attributes), inputs), [want])
    skip, bias = normal(rng, 2, 8), normal(rng, 8)
    axes = (0, 1, 1, 3) if last else (0, 3, 1, 1)
    spread = (2, 1, 1, 8) if last else (2, 8, 1, 1)
    assert len(axes) == 4
    total = x + skip.reshape(spread) + bias.reshape((8,) if last else (8, 1, 1))
    inputs |= {"skip": skip, "bias": bias}
    got = interpreted(node_model("SkipGroupNorm", inputs, ("y", "sum"), **attributes), inputs)
    compare(got, [_group_norm(total, w["gamma"], w["beta"], 2, last, silu), total])


@pytest.mark.parametrize("kind", ["silu", "swish", "sigmoid"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gated_rms_norm(dtype: Any, kind: str) -> None:
    rng = np.random.default_rng(0)
    inputs: dict[str, Array | None] = {
        "x": normal(rng, 2, 3, 12, dtype=dtype),
        "scale": normal(rng, 4, dtype=dtype),
        "gate": normal(rng, 2, 3, 12, dtype=dtype),
    }
    agree("GatedRMSNorm", inputs, element=DTYPES[dtype], activation=kind)


_X, _W = np.zeros((2, 3, 4), np.float32), np.ones(4, np.float32)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("SkipLayerNormalization", {"x": _X, "s": _X}, {}, "gamma"),
        ("SkipLayerNormalization", {"x": _X, "s": _X[:, :2], "g": _W}, {}, "3"),
        ("SkipLayerNormalization", {"x": _X, "s": _X, "g": _W[:3]}, {}, "4"),
        ("SkipLayerNormalization", {"x": _X, "s": _X, "g": _W}, {"axis": 1}, "axis"),
        ("SkipLayerNormalization", {"x": _X, "s": _X, "g": _W}, {"epsilon": -1.0}, "epsilon"),
        ("SkipLayerNormalization", {"x": _X, "s": _X, "g": _W}, {"epsilon": 1}, "epsilon"),
        ("SkipLayerNormalization", {"x": _X[0, 0], "s": _X, "g": _W}, {}, "rank"),
        ("SkipLayerNormalization", {"x": _X, "s": _X.astype(np.float16), "g": _W}, {}, "f32"),
        ("GroupNorm", {"x": _X[None], "g": _W, "b": _W}, {"activation": 0}, "groups"),
        ("GroupNorm", {"x": _X[None], "g": _W, "b": _W}, {"activation": 2, "groups": 2}, "activation"),
        ("GroupNorm", {"x": _X[None], "g": _W, "b": _W}, {"activation": 0, "groups": 3}, "multiple"),
        ("GroupNorm", {"x": _X[None], "g": _W, "b": _W}, {"activation": 0, "groups": 0}, "positive"),
        ("GatedRMSNorm", {"x": _X, "s": _W, "g": _X}, {"activation": "relu"}, "silu"),
        ("GatedRMSNorm", {"x": _X, "s": _W[:3], "g": _X}, {}, "multiple"),
    ],
)
def test_malformed_nodes_are_refused(op: str, inputs: Any, attributes: Any, message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        import_onnx(node_model(op, inputs, **attributes))


def test_the_mean_of_rms_normalization_is_refused() -> None:
    inputs = {"x": _X, "s": _X, "g": _W}
    with pytest.raises(UnsupportedError, match="training"):
        import_onnx(node_model("SkipSimplifiedLayerNormalization", inputs, ("y", "mean")))
