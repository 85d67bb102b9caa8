"""TfIdfVectorizer: as ONNX Runtime and ONNX's reference count, for random pools and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import gcomp
from gcomp.errors import GcompError, InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from gcomp.reference.interpreter import interpret
from tests.support.thinning import thinned

BASE: dict[str, Any] = {
    "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 2],
    "ngram_indexes": [0, 1, 2], "pool_int64s": [1, 2, 1, 2],
}  # fmt: skip


def made(shape: list[Any], element: int = 7, **attributes: Any) -> ModelProto:
    given = {name: value for name, value in attributes.items() if value is not None}
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], name="words", **given)
    x = helper.make_tensor_value_info("x", element, shape)
    y = helper.make_tensor_value_info("y", 1, [f"o{i}" for i in range(len(shape))])
    graph = helper.make_graph([node], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def random_attributes(rng: np.random.Generator) -> dict[str, Any]:
    """Pools of up to three lengths over four numbers."""
    starts, pool, total = [], [], 0
    for length in (1, 2, 3):
        grams = np.unique(rng.integers(0, 4, (rng.integers(0, 5), length)), axis=0)
        starts.append(len(pool))
        pool += rng.permutation(grams).reshape(-1).tolist()
        total += len(grams)
    least = int(rng.integers(1, 4))
    return {
        "mode": str(rng.choice(["TF", "IDF", "TFIDF"])),
        "min_gram_length": least,
        "max_gram_length": int(rng.integers(least, 4)),
        "max_skip_count": int(rng.integers(0, 4)),
        "ngram_counts": starts,
        "ngram_indexes": rng.permutation(total).tolist() if total else [0],
        "pool_int64s": pool or [9],
        "weights": rng.random(max(total, 1)).astype(np.float32).tolist(),
    }


@pytest.mark.parametrize("seed", thinned(range(24), lambda seed: seed < 8))
def test_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    attributes, batched = random_attributes(rng), bool(rng.integers(0, 2))
    element, dtype = (6, np.int32) if seed % 3 == 0 else (7, np.int64)
    proto = made(["n", "c"] if batched else ["c"], element, **attributes)
    # ONNX's reference takes weights to be in the order of the columns, and not of the n-grams.
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    evaluator = ReferenceEvaluator(proto) if attributes["mode"] == "TF" else None
    program = import_onnx(proto)

    runs: list[Any] = [lambda x: interpret(program, [x])]
    runs.append(lambda x: interpret(import_onnx(made(list(x.shape), element, **attributes)), [x]))
    runs += [gcomp.compile(proto)] if seed % 4 == 0 else []
    for length in (1, 2, 3, 7, 20):
        x = rng.integers(0, 5, (3, length) if batched else length).astype(dtype)
        (want,) = session.run(None, {"x": x})
        assert evaluator is None or np.array_equal(evaluator.run(None, {"x": x})[0], want)
        for run in runs:
            # ONNX Runtime adds a weight once for each n-gram found.
            np.testing.assert_allclose(np.asarray(run(x)[0]), want, rtol=20 * np.finfo(np.float32).eps)


@pytest.mark.parametrize(("mode", "expected"), [("TF", [0, 3, 0, 5]), ("TFIDF", [0, 3, 0, 35])])
def test_counts_of_one_place_add_up(mode: str, expected: list[int]) -> None:
    shared = BASE | {"ngram_indexes": [3, 1, 3], "weights": [10.0, 1.0, 5.0]}
    proto = made(["c"], **(shared | {"mode": mode}))
    x = np.asarray([1, 2, 2, 1, 2], np.int64)
    (want,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    (got,) = interpret(import_onnx(proto), [x])
    assert np.array_equal(got, want) and want.tolist() == expected
    with pytest.raises(UnsupportedError, match="share"):
        import_onnx(made(["c"], **(shared | {"mode": "IDF"})))


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"mode": "tf"}, "mode"),
        ({"min_gram_length": 0}, "n-grams have"),
        ({"min_gram_length": 3}, "n-grams have"),
        ({"max_skip_count": -1}, "skip count"),
        ({"ngram_counts": [0, 5]}, "ascend"),
        ({"ngram_counts": [2, 0]}, "ascend"),
        ({"ngram_counts": [0, 1]}, "whole"),
        ({"ngram_indexes": [0, 1]}, "indexes for 2"),
        ({"ngram_indexes": [0, 1, -1]}, "not negative"),
        ({"pool_int64s": [1, 1, 1, 2]}, "twice"),
        ({"weights": [1.0]}, "1 weights"),
        ({"pool_int64s": None}, "empty"),
    ],
    ids=str,
)
def test_what_contradicts_is_invalid(changed: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidModelError, match=match):
        import_onnx(made(["c"], **(BASE | changed)))


@pytest.mark.parametrize("changed", [{"ngram_indexes": [0, 1, 1 << 40]}, {"max_skip_count": 1 << 40}])
def test_what_is_too_large_is_unsupported(changed: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        import_onnx(made(["c"], **(BASE | changed)))
    if "max_skip_count" in changed:
        assert np.array_equal(
            interpret(import_onnx(made([3], **(BASE | changed))), [np.asarray([1, 5, 2])])[0], [1, 1, 1]
        )


def test_strings_and_ranks() -> None:
    strings = {**BASE, "pool_strings": ["a", "b", "a", "b"], "pool_int64s": None}
    with pytest.raises(UnsupportedError, match="strings"):
        import_onnx(made(["c"], **strings))
    with pytest.raises(GcompError, match="rank 3"):
        import_onnx(made(["a", "b", "c"], **BASE))
