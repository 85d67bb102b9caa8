"""GroupQueryAttention: against ONNX Runtime, over steps of decoders, with caches that grow and buffers that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import Array, compare, compiled_agrees, interpreted, node_model, normal, peer

Inputs = dict[str, Array | None]
_HEADS, _SHARED, _SIZE = 4, 2, 16
_RESULTS = ("y", "present_key", "present_value")
_COUNTS: dict[str, Any] = {"num_heads": _HEADS, "kv_num_heads": _SHARED}


def _step(
    rng: np.random.Generator, rows: int, ends: list[int], *, room: int = 0, packed: bool = False, rotary: bool = False,
    total: int | None = None, dtype: Any = np.float32, **others: Array,
) -> Inputs:  # fmt: skip
    """The inputs of a step, after which row i of the batch holds `ends[i]` positions; caches have `room` positions."""
    batch = len(ends)

    def some(*shape: int) -> Array:
        return normal(rng, *shape, dtype=dtype)

    inputs: Inputs = {"q": some(batch, rows, (_HEADS + 2 * packed * _SHARED) * _SIZE)}
    inputs |= {n: None if packed else some(batch, rows, _SHARED * _SIZE) for n in ("k", "v")}
    for name in ("past_key", "past_value"):
        inputs[name] = some(batch, _SHARED, room, _SIZE) if room else None
    inputs["last"] = np.asarray([e - 1 for e in ends], np.int32)
    inputs["total"] = np.asarray([total or max(ends)], np.int32)
    angles = normal(rng, 24, _SIZE // 2)
    for name, table in (("cos", np.cos(angles)), ("sin", np.sin(angles))):
        inputs[name] = table.astype(dtype) if rotary else None
    return inputs | {n: others.get(n) for n in ("positions", "added", "sink")}


def _check(inputs: Inputs, ends: list[int], outputs: tuple[str, ...] = _RESULTS, **options: Any) -> None:
    """Equal outputs, and equal presents up to the positions that each row holds: the rest is unspecified."""
    dtype = np.asarray(inputs["q"]).dtype
    element = TensorProto.FLOAT if dtype == np.float32 else TensorProto.FLOAT16
    model = node_model(
        "GroupQueryAttention", inputs, outputs, constants=("total",), element=element, **_COUNTS, **options
    )
    got, want = interpreted(model, inputs), peer(model, inputs)
    for results in (got, want):
        for i in (1, 2):
            results[i] = np.array(results[i])
            for row, end in enumerate(ends):
                results[i][row, :, end:] = 0
    compare(got, want)


_STEPS: dict[str, tuple[int, list[int], dict[str, Any]]] = {
    "prompt": (3, [3, 3], {}),
    "padded prompt": (4, [4, 2], {"total": 4}),
    "token": (1, [5, 5], {"room": 4}),
    "token of rows of different lengths": (1, [5, 3], {"room": 4}),
    "token in a buffer": (1, [5, 3], {"room": 9}),
    "prompt in a buffer": (3, [3, 3], {"room": 9}),
    "more of a prompt": (3, [7], {"room": 4}),
    "more of a prompt in a buffer": (3, [7], {"room": 12}),
    "packed": (1, [5, 4], {"room": 4, "packed": True}),
    "packed prompt": (3, [3, 3], {"packed": True}),
}


@pytest.mark.parametrize("name", _STEPS)
def test_steps(name: str) -> None:
    rows, ends, options = _STEPS[name]
    rng = np.random.default_rng(len(name))
    _check(_step(rng, rows, ends, **options), ends)
    _check(_step(rng, rows, ends, rotary=True, **options), ends, do_rotary=1)
    _check(_step(rng, rows, ends, rotary=True, **options), ends, do_rotary=1, rotary_interleaved=1, scale=0.2)


@pytest.mark.parametrize("name", ["prompt", "token of rows of different lengths", "more of a prompt in a buffer"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"local_window_size": 1},
        {"local_window_size": 2},
        {"local_window_size": 3, "softcap": 0.5},
        {"softcap": 0.7},
        {"smooth_softmax": 1},
        {"causal": 0},
        {"smooth_softmax": 1, "softcap": 0.7, "local_window_size": 2},
    ],
)
def test_windows_caps_and_smooth_softmax(name: str, attributes: dict[str, Any]) -> None:
    rows, ends, options = _STEPS[name]
    _check(_step(np.random.default_rng(1), rows, ends, **options), ends, **attributes)


@pytest.mark.parametrize("name", ["prompt", "token of rows of different lengths"])
@pytest.mark.parametrize("shape", [(1, 1), (1, _HEADS), (2, 1), (2, _HEADS)])
def test_attention_bias_and_sinks(name: str, shape: tuple[int, int]) -> None:
    rows, ends, options = _STEPS[name]
    rng = np.random.default_rng(2)
    added = normal(rng, *shape, rows, max(ends))
    _check(_step(rng, rows, ends, added=added, **options), ends)
    _check(_step(rng, rows, ends, added=added, sink=normal(rng, _HEADS), **options), ends, softcap=0.5)


@pytest.mark.parametrize(("name", "positions"), [("prompt", [[2, 3, 4], [7, 8, 9]]), ("token", [[7], [9]]),
                                                 ("more of a prompt", [[7, 9, 11]])])  # fmt: skip
def test_positions_that_are_given(name: str, positions: list[list[int]]) -> None:
    rows, ends, options = _STEPS[name]
    places = np.asarray(positions, np.int64)
    _check(_step(np.random.default_rng(3), rows, ends, rotary=True, positions=places, **options), ends, do_rotary=1)


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("attributes", [{}, {"local_window_size": 2}, {"softcap": 0.5}])
def test_scores_and_weights_on_request(which: int, attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    _check(_step(rng, 3, [3, 3]), [3, 3], (*_RESULTS, "scores"), qk_output=which, **attributes)
    _check(_step(rng, 1, [5], room=8), [5], (*_RESULTS, "scores"), qk_output=which, **attributes)


@pytest.mark.parametrize("name", ["prompt", "token"])
def test_half_precision(name: str) -> None:
    rows, ends, options = _STEPS[name]
    _check(_step(np.random.default_rng(5), rows, ends, rotary=True, dtype=np.float16, **options), ends, do_rotary=1)


def test_queries_and_keys_are_normalized_before_they_are_turned() -> None:
    """ONNX Runtime's CPU refuses the norms: it judges the same step of operands normalized beforehand."""
    rng = np.random.default_rng(6)
    inputs = _step(rng, 3, [3, 3], rotary=True)
    weights: Inputs = {"query_norm": normal(rng, _SIZE), "key_norm": normal(rng, _SIZE)}
    normed = inputs | {"k_scale": None, "v_scale": None} | weights
    options = {"constants": ("total",), "do_rotary": 1, **_COUNTS}
    got = interpreted(node_model("GroupQueryAttention", normed, _RESULTS, **options), normed)
    for name, weight, heads in (("q", "query_norm", _HEADS), ("k", "key_norm", _SHARED)):
        x = np.asarray(inputs[name]).reshape(2, 3, heads, _SIZE)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * np.asarray(weights[weight])
        inputs[name] = x.reshape(2, 3, heads * _SIZE)
    compare(got, peer(node_model("GroupQueryAttention", inputs, _RESULTS, **options), inputs))


# ---- decoders as exporters write them ----------------------------------------------------------------------------


def _decoder(dtype: Any = np.float32) -> onnx.ModelProto:
    """A step whose lengths are made of an attention mask, as onnxruntime-genai's model builder makes them."""
    t = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node, value, counts = helper.make_node, helper.make_tensor_value_info, dict(_COUNTS)
    names = ["q", "k", "v", "past_key", "past_value", "last", "total", "cos", "sin"]
    nodes = [
        node("ReduceSum", ["mask", "one"], ["sum"], keepdims=0),
        node("Sub", ["sum", "one"], ["before"]),
        node("Cast", ["before"], ["last"], to=TensorProto.INT32),
        node("Shape", ["mask"], ["shape"]),
        node("Gather", ["shape", "second"], ["size"], axis=0),
        node("Cast", ["size"], ["total"], to=TensorProto.INT32),
        node("GroupQueryAttention", names, list(_RESULTS), domain="com.microsoft", do_rotary=1, **counts),
    ]
    flat, wide, past = ["b", "s", _SHARED * _SIZE], ["b", "s", _HEADS * _SIZE], ["b", _SHARED, "past", _SIZE]
    inputs = [value("q", t, wide), value("k", t, flat), value("v", t, flat), value("past_key", t, past)]
    inputs += [value("past_value", t, past), value("mask", TensorProto.INT64, ["b", "total_length"])]
    angles = normal(np.random.default_rng(0), 24, _SIZE // 2)
    constants = {"one": np.int64([1]), "second": np.int64(1)}
    constants |= {"cos": np.cos(angles).astype(dtype), "sin": np.sin(angles).astype(dtype)}
    weights = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, [value(n, t, None) for n in _RESULTS], initializer=weights)
    imports = [helper.make_opsetid("", 16), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _call(rng: np.random.Generator, batch: int, rows: int, past: int, room: int, dtype: Any = np.float32) -> Inputs:
    inputs: Inputs = {"q": normal(rng, batch, rows, _HEADS * _SIZE, dtype=dtype)}
    inputs |= {n: normal(rng, batch, rows, _SHARED * _SIZE, dtype=dtype) for n in ("k", "v")}
    for name in ("past_key", "past_value"):
        cache = normal(rng, batch, _SHARED, room, _SIZE, dtype=dtype)
        cache[:, :, past:] = 0
        inputs[name] = cache
    return inputs | {"mask": np.ones((batch, past + rows), np.int64)}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_one_compilation_serves_prompts_and_tokens_with_growing_caches_and_buffers(dtype: Any) -> None:
    rng = np.random.default_rng(8)
    calls = [(2, 3, 0, 0), (2, 1, 3, 3), (1, 1, 5, 9)] + ([(2, 4, 0, 9), (1, 3, 4, 4)] if dtype == np.float32 else [])
    compiled_agrees(_decoder(dtype), [_call(rng, *c, dtype=dtype) for c in calls], dims={"past": (0, 64)})


def test_a_total_length_that_is_data() -> None:
    inputs = _step(np.random.default_rng(9), 1, [5, 5], room=4)
    compiled_agrees(node_model("GroupQueryAttention", inputs, _RESULTS, **_COUNTS), [inputs])


# ---- what is refused ---------------------------------------------------------------------------------------------


def _made(inputs: Inputs, **attributes: Any) -> onnx.ModelProto:
    return node_model("GroupQueryAttention", inputs, _RESULTS, constants=("total",), **(_COUNTS | attributes))


@pytest.mark.parametrize(
    ("changes", "attributes", "message"),
    [
        ({}, {"num_heads": 3}, "multiple"),
        ({}, {"kv_num_heads": 0}, "positive"),
        ({}, {"local_window_size": 0}, "local_window_size"),
        ({}, {"local_window_size": 2, "causal": 0}, "local_window_size"),
        ({}, {"do_rotary": 1}, "tables"),
        ({}, {"qk_output": 3}, "qk_output"),
        ({}, {"softcap": -1.0}, "softcap"),
        ({}, {"windows": 1}, "windows"),
        ({"v": None}, {}, "missing"),
        ({"past_value": None}, {}, "missing"),
        ({"last": None}, {}, "missing"),
        ({"last": np.zeros(3, np.int32)}, {}, "2"),
        ({"total": np.zeros(2, np.int32)}, {}, "2 numbers"),
        ({"total": np.zeros(1, np.int32)}, {}, "total_sequence_length"),
        ({"past_key": np.zeros((2, 3, 4, _SIZE), np.float32)}, {}, "2"),
        ({"past_key": np.zeros((2, 2, 4, 8), np.float32)}, {}, "16"),
        ({"sink": np.zeros(3, np.float32)}, {}, "4"),
        ({"added": np.zeros((1, 1, 1, 4), np.float32)}, {}, "5"),
        ({"cos": np.zeros((9, 9), np.float32), "sin": np.zeros((9, 9), np.float32)}, {"do_rotary": 1}, "18"),
    ],
)
def test_malformed_nodes_are_refused(changes: Inputs, attributes: dict[str, Any], message: str) -> None:
    inputs = _step(np.random.default_rng(0), 1, [5, 5], room=4) | changes
    with pytest.raises(InvalidModelError, match=message):
        import_onnx(_made(inputs, **attributes))


@pytest.mark.parametrize("attributes", [{"k_quant_type": "PER_TENSOR"}, {"sliding_window_cache": 1}])
def test_quantized_and_sliding_caches_are_refused(attributes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="cache"):
        import_onnx(_made(_step(np.random.default_rng(0), 1, [5, 5], room=4), **attributes))
