"""Rotary embeddings and position biases of com.microsoft: against ONNX Runtime, or their formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import Array, agree, compare, compiled_agrees, interpreted, node_model, normal

Inputs = dict[str, Array | None]


def _rotary(rng: np.random.Generator, *shape: int, places: Array | None = None, dtype: Any = np.float32) -> Inputs:
    length = shape[-2]
    angles = normal(rng, 20, 4)
    ids = rng.integers(0, 20, (shape[0], length)) if places is None else places
    x = normal(rng, *shape, dtype=dtype)
    return {"x": x, "ids": ids, "cos": np.cos(angles).astype(dtype), "sin": np.sin(angles).astype(dtype)}


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((2, 3, 16), {}),
        ((2, 3, 16), {"num_heads": 2}),
        ((2, 2, 3, 8), {}),
        ((2, 3, 24), {"num_heads": 2, "rotary_embedding_dim": 8}),
        ((2, 2, 3, 12), {"num_heads": 2, "rotary_embedding_dim": 8}),
    ],
)
def test_rotary_embedding(shape: tuple[int, ...], attributes: dict[str, int], interleaved: int) -> None:
    rng = np.random.default_rng(0)
    agree("RotaryEmbedding", _rotary(rng, *shape), interleaved=interleaved, **attributes)
    agree("RotaryEmbedding", _rotary(rng, *shape, places=np.int64([5])), interleaved=interleaved, **attributes)


def test_rotary_embedding_in_half_precision() -> None:
    inputs = _rotary(np.random.default_rng(0), 2, 3, 16, dtype=np.float16)
    agree("RotaryEmbedding", inputs, element=TensorProto.FLOAT16)


def test_rotary_embedding_with_symbolic_sizes() -> None:
    rng = np.random.default_rng(0)
    first, second = _rotary(rng, 2, 3, 16), _rotary(rng, 1, 5, 16)
    second |= {n: first[n] for n in ("cos", "sin")}
    dims = {"x": ["b", "s", 16], "ids": ["b", "s"]}
    compiled_agrees(node_model("RotaryEmbedding", first, dims=dims, constants=("cos", "sin")), [first, second])


def test_gemma_rotary_embedding_follows_its_definition() -> None:
    rng = np.random.default_rng(0)
    emb, rest = normal(rng, 2, 3, 4), {n: normal(rng, 2, 5, 3, 4, dtype=np.float16) for n in ("q", "qr", "k", "kr")}
    cos, sin = (f(emb).astype(np.float16)[:, None] for f in (np.cos, np.sin))
    want = [rest[n] * cos + rest[f"{n}r"] * sin for n in ("q", "k")]
    inputs: Inputs = {"emb": emb, **rest}
    model = node_model("GemmaRotaryEmbedding", inputs, ("y", "z"), element=TensorProto.FLOAT16)
    compare(interpreted(model, inputs), want)


# ---- position biases ---------------------------------------------------------------------------------------------


def _bucket(distance: int, buckets: int, farthest: int, both: bool) -> int:
    """T5's bucket of key position - query position."""
    base = 0
    if both:
        buckets //= 2
        base, distance = (buckets if distance > 0 else 0), abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return base + distance
    far = exact + int(math.log(distance / exact) / math.log(farthest / exact) * (buckets - exact))
    return base + min(far, buckets - 1)


@pytest.mark.parametrize(("buckets", "farthest", "both"), [(32, 100, 0), (32, 100, 1), (8, 20, 1), (9, 15, 0)])
def test_relative_position_bias_is_t5s(buckets: int, farthest: int, both: int) -> None:
    """The expected buckets' edges are no integers here, so that roundings do not matter."""
    table = normal(np.random.default_rng(0), buckets, 3)
    inputs: Inputs = {"table": table, "rows": np.int64([33]), "columns": np.int64([33])}
    options: dict[str, Any] = {"max_distance": farthest, "is_bidirectional": both}
    model = node_model("RelativePositionBias", inputs, constants=("rows", "columns"), **options)
    by_head = table.reshape(3, buckets)
    places = [[_bucket(j - i, buckets, farthest, bool(both)) for j in range(33)] for i in range(33)]
    compare(interpreted(model, inputs), [by_head[:, np.asarray(places)][None]])


def test_gated_relative_position_bias_follows_its_definition() -> None:
    rng = np.random.default_rng(0)
    b, s, n, h, d = 2, 3, 2, 4, 8
    inputs: Inputs = {
        "query": normal(rng, b, s, n * h),
        "query_bias": normal(rng, n * h),
        "places": normal(rng, 1, n, s, s),
        "weight": normal(rng, h, d),
        "bias": normal(rng, d),
        "eco": normal(rng, 1, n, 1, 1),
    }
    v = {name: np.asarray(x) for name, x in inputs.items()}
    query = (v["query"] + v["query_bias"]).reshape(b, s, n, h).transpose(0, 2, 1, 3)
    gates = (query @ v["weight"] + v["bias"]).reshape(b, n, s, 2, d // 2).sum(-1)
    update, reset = np.split(1 / (1 + np.exp(-gates)), 2, -1)
    want = ((update * (reset * v["eco"] - 1) + 2) * v["places"]).astype(np.float32)
    compare(interpreted(node_model("GatedRelativePositionBias", inputs, num_heads=n), inputs), [want])


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "attributes", "message"),
    [
        ({"x": np.zeros((2, 3, 12), np.float32)}, {}, "features"),
        ({"x": np.zeros((2, 2, 3, 6), np.float32)}, {}, "6"),
        ({"ids": np.zeros((2, 4), np.int64)}, {}, "3"),
        ({"ids": np.zeros((2, 3), np.int32)}, {}, "i64"),
        ({"ids": np.zeros(2, np.int64)}, {}, "1"),
        ({"sin": np.zeros((20, 3), np.float32)}, {}, "4"),
        ({}, {"rotary_embedding_dim": 8}, "number"),
        ({}, {"num_heads": 3, "rotary_embedding_dim": 8}, "multiple"),
        ({}, {"num_heads": -1}, "num_heads"),
    ],
)
def test_malformed_nodes_are_refused(changes: Inputs, attributes: dict[str, int], message: str) -> None:
    inputs = _rotary(np.random.default_rng(0), 2, 3, 16) | changes
    with pytest.raises(InvalidModelError, match=message):
        import_onnx(node_model("RotaryEmbedding", inputs, **attributes))


@pytest.mark.parametrize("attributes", [{"is_packed_batching": 1}, {"scale": 2.0}])
def test_packed_batches_and_scales_are_refused(attributes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        import_onnx(node_model("RotaryEmbedding", _rotary(np.random.default_rng(0), 2, 3, 16), **attributes))
