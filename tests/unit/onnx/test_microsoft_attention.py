"""Attention, MultiHeadAttention and decoders of com.microsoft: against ONNX Runtime over random configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcomp.errors import InvalidModelError, UnsupportedError
from gcomp.frontends.onnx import import_onnx
from tests.unit.onnx.contrib_models import Array, agree, compare, compiled_agrees, interpreted, node_model, normal, peer

Inputs = dict[str, Array | None]
_PRESENTS = ("y", "present_key", "present_value")


def _flags(rng: np.random.Generator, *shape: int) -> Array:
    """A mask in which every row sees its first key: else 10000 is taken off all scores, and their roundings show."""
    flags = rng.integers(0, 2, shape).astype(np.int32)
    flags[..., 0] = 1
    return flags


def _i32(*values: int) -> Array:
    return np.asarray(values, np.int32)


# ---- Attention ---------------------------------------------------------------------------------------------------


def _attention_mask(rng: np.random.Generator, kind: str, batch: int, rows: int, total: int) -> Array | None:
    ends = rng.integers(1, total + 1, batch).astype(np.int32)
    match kind:
        case "none":
            return None
        case "ends":
            return ends
        case "ends and starts":
            return np.concatenate([ends, rng.integers(0, total, batch).astype(np.int32)])
        case "offsets":
            return np.concatenate([ends, rng.integers(0, 9, 2 * batch + 2).astype(np.int32)])
        case "keys":
            return _flags(rng, batch, total)
        case "dummy":
            return _flags(rng, batch, 1)
        case _:
            return _flags(rng, batch, rows, total)


@pytest.mark.parametrize("past", [None, 3])
@pytest.mark.parametrize("kind", ["none", "ends", "ends and starts", "offsets", "keys", "dummy", "rows"])
def test_attention(kind: str, past: int | None) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        heads, b, s, size = (int(v) for v in rng.integers(1, 4, 4))
        wide = heads * size
        inputs: Inputs = {
            "x": normal(rng, b, s, 5),
            "w": normal(rng, 5, 3 * wide),
            "bias": normal(rng, 3 * wide),
            "mask": _attention_mask(rng, kind, b, s, s + (past or 0)),
            "past": None if past is None else normal(rng, 2, b, heads, past, size),
            "added": normal(rng, b, heads, s, s) if past is None and seed % 2 else None,
        }
        options: dict[str, Any] = {"num_heads": heads, "unidirectional": seed // 2}
        if seed == 3:
            options |= {"scale": 0.3, "mask_filter_value": -5.0}
        # Starts may hide all that a row sees: all scores are then less by 10000, and their roundings show.
        agree("Attention", inputs, ("y", "present"), tolerance=3e-3 if kind == "ends and starts" else None, **options)


def test_rows_that_see_nothing_weigh_hidden_keys() -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {"x": normal(rng, 2, 3, 4), "w": normal(rng, 4, 24), "b": normal(rng, 24), "m": _i32(0, 2)}
    agree("Attention", inputs, num_heads=2, tolerance=3e-3)
    agree("Attention", inputs, num_heads=2, unidirectional=1, tolerance=3e-3)
    agree("Attention", inputs, num_heads=2, unidirectional=1, mask_filter_value=0.0)


def test_attention_with_values_of_another_width() -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {"x": normal(rng, 2, 3, 4), "w": normal(rng, 4, 28), "b": normal(rng, 28)}
    agree("Attention", inputs, num_heads=2, qkv_hidden_sizes=[8, 8, 12])


def test_a_mask_of_all_positions_is_cut_where_the_rows_stand() -> None:
    """ONNX Runtime's CPU has no kernel for (batch, 1, longest, longest): the same mask of rows is the judge."""
    rng = np.random.default_rng(1)
    mask = _flags(rng, 2, 1, 7, 7)
    inputs: Inputs = {"x": normal(rng, 2, 3, 4), "w": normal(rng, 4, 24), "b": normal(rng, 24), "m": mask}
    inputs["past"] = normal(rng, 2, 2, 2, 2, 4)
    outputs = ("y", "present")
    got = interpreted(node_model("Attention", inputs, outputs, num_heads=2), inputs)
    inputs["m"] = np.ascontiguousarray(mask[:, 0, 2:5, :5])
    compare(got, peer(node_model("Attention", inputs, outputs, num_heads=2), inputs))


def test_attention_without_a_bias_is_one_with_zeros() -> None:
    rng = np.random.default_rng(2)
    inputs: Inputs = {"x": normal(rng, 2, 3, 4), "w": normal(rng, 4, 24), "b": None}
    got = interpreted(node_model("Attention", inputs, num_heads=2), inputs)
    inputs["b"] = np.zeros(24, np.float32)
    compare(got, peer(node_model("Attention", inputs, num_heads=2), inputs))


def test_attention_with_symbolic_sizes() -> None:
    rng = np.random.default_rng(3)
    weights: Inputs = {"w": normal(rng, 8, 24), "b": normal(rng, 24)}

    def call(b: int, s: int, p: int) -> Inputs:
        return {"x": normal(rng, b, s, 8), **weights, "m": _flags(rng, b, s + p), "past": normal(rng, 2, b, 2, p, 4)}

    dims = {"x": ["b", "s", 8], "m": ["b", "t"], "past": [2, "b", 2, "p", 4]}
    model = node_model("Attention", call(1, 1, 1), ("y", "present"), dims, tuple(weights), num_heads=2,
                       unidirectional=1)  # fmt: skip
    compiled_agrees(model, [call(2, 3, 4), call(1, 1, 2)])


# ---- MultiHeadAttention ------------------------------------------------------------------------------------------


def _separate(rng: np.random.Generator, b: int, s: int, kv: int, heads: int, size: int, value: int) -> Inputs:
    return {
        "q": normal(rng, b, s, heads * size),
        "k": normal(rng, b, kv, heads * size),
        "v": normal(rng, b, kv, heads * value),
    }


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("kind", ["none", "ends", "offsets", "keys", "rows"])
def test_multi_head_attention(kind: str, cached: bool) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed + 10)
        heads, b, s, size, kv = (int(v) for v in rng.integers(1, 5, 5))
        value = size if cached else int(rng.integers(1, 5))
        past = int(rng.integers(1, 4)) if cached else 0
        total = kv + past
        inputs = _separate(rng, b, s, kv, heads, size, value)
        inputs["bias"] = normal(rng, heads * (2 * size + value)) if seed % 2 else None
        inputs["mask"] = _attention_mask(rng, kind, b, s, total)
        inputs["added"] = normal(rng, (1, b)[seed % 2], (heads, 1)[seed // 2], s, total) if seed else None
        if cached:
            inputs |= {f"past_{n}": normal(rng, b, heads, past, size) for n in ("key", "value")}
        options: dict[str, Any] = {"num_heads": heads, "unidirectional": seed // 2}
        if seed == 1:
            options |= {"scale": 0.3, "mask_filter_value": -5.0}
        agree("MultiHeadAttention", inputs, _PRESENTS if cached or seed % 2 else ("y",), **options)


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_causal_cross_attention_is_onnx_runtimes(rows: int) -> None:
    inputs = _separate(np.random.default_rng(rows), 2, rows, 4, 2, 3, 3)
    agree("MultiHeadAttention", inputs, num_heads=2, unidirectional=1)


@pytest.mark.parametrize("masked", [False, True])
def test_keys_of_an_encoder(masked: bool) -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {
        "q": normal(rng, 2, 3, 8),
        "k": normal(rng, 2, 2, 5, 4),
        "v": normal(rng, 2, 2, 5, 4),
        "bias": None if masked else normal(rng, 24),
        "mask": _flags(rng, 2, 5) if masked else None,
    }
    agree("MultiHeadAttention", inputs, _PRESENTS, num_heads=2)


def test_the_scores_on_request() -> None:
    rng = np.random.default_rng(0)
    inputs = _separate(rng, 2, 3, 5, 2, 4, 4) | {"bias": None, "mask": _flags(rng, 2, 5)}
    agree("MultiHeadAttention", inputs, ("y", "", "", "scores"), num_heads=2)


@pytest.mark.parametrize("count", [1, 2])
def test_buffers_that_hold_some_positions(count: int) -> None:
    rng = np.random.default_rng(count)
    inputs = _separate(rng, 2, count, count, 2, 4, 4) | {"bias": None, "mask": None, "added": None}
    inputs |= {f"past_{n}": normal(rng, 2, 2, 6, 4) for n in ("key", "value")} | {"count": _i32(3)}
    agree("MultiHeadAttention", inputs, _PRESENTS, num_heads=2, unidirectional=1)


def test_packed_operands_are_their_parts() -> None:
    """ONNX Runtime's CPU has no kernels for packed operands: it judges the parts."""
    rng = np.random.default_rng(0)
    q, k, v = (normal(rng, 2, 3, 2, 4) for _ in range(3))
    bias = normal(rng, 24)
    flat: Inputs = {n: x.reshape(2, 3, 8) for n, x in (("q", q), ("k", k), ("v", v))}
    want = peer(node_model("MultiHeadAttention", flat | {"bias": bias}, num_heads=2), flat | {"bias": bias})
    packed: Inputs = {"q": np.stack([q, k, v], 3), "k": None, "v": None, "bias": bias}
    compare(interpreted(node_model("MultiHeadAttention", packed, num_heads=2), packed), want)
    want = peer(node_model("MultiHeadAttention", flat, num_heads=2), flat)
    half: Inputs = {"q": flat["q"], "k": np.stack([k, v], 3)}
    compare(interpreted(node_model("MultiHeadAttention", half, num_heads=2), half), want)


def test_half_precision_is_computed_in_single() -> None:
    rng = np.random.default_rng(0)
    inputs = _separate(rng, 2, 3, 3, 2, 16, 16)
    want = peer(node_model("MultiHeadAttention", inputs, num_heads=2), inputs)
    narrow: Inputs = {n: np.asarray(v).astype(np.float16) for n, v in inputs.items()}
    (got,) = interpreted(node_model("MultiHeadAttention", narrow, num_heads=2, element=10), narrow)
    assert got.dtype == np.float16
    assert np.abs(got.astype(np.float32) - want[0]).max() < 4e-3


def test_multi_head_attention_with_symbolic_sizes() -> None:
    rng = np.random.default_rng(7)

    def call(b: int, s: int, p: int) -> Inputs:
        inputs = _separate(rng, b, s, s, 2, 4, 4)
        inputs |= {"bias": normal(rng, 24), "mask": _flags(rng, b, s + p), "added": normal(rng, 1, 2, s, s + p)}
        return inputs | {f"past_{n}": normal(rng, b, 2, p, 4) for n in ("key", "value")}

    flat, cache = ["b", "s", 8], ["b", 2, "p", 4]
    dims = {"q": flat, "k": flat, "v": flat, "mask": ["b", "t"], "added": [1, 2, "s", "t"]}
    dims |= {"past_key": cache, "past_value": cache}
    model = node_model("MultiHeadAttention", call(1, 1, 1), _PRESENTS, dims, num_heads=2, unidirectional=1)
    compiled_agrees(model, [call(2, 3, 4), call(1, 1, 2)])


# ---- decoders ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["plain", "mask", "added", "bias"])
def test_decoder_masked_multi_head_attention(variant: str) -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {n: normal(rng, 2, 1, 8) for n in ("q", "k", "v")}
    inputs["mask"] = _flags(rng, 2, 3) if variant == "mask" else None
    inputs["added"] = normal(rng, 1, 2, 1, 3) if variant == "added" else None
    inputs |= {f"past_{n}": normal(rng, 2, 2, 5, 4) for n in ("key", "value")}
    inputs |= {"count": _i32(2), "beams": None, "indirection": None}
    inputs["bias"] = normal(rng, 24) if variant == "bias" else None
    agree("DecoderMaskedMultiHeadAttention", inputs, _PRESENTS, num_heads=2, past_present_share_buffer=1)


def test_a_decoders_packed_operand_is_its_parts() -> None:
    rng = np.random.default_rng(0)
    parts: Inputs = {n: normal(rng, 2, 1, 8) for n in ("q", "k", "v")}
    rest: Inputs = {"mask": None, "added": None} | {n: normal(rng, 2, 2, 5, 4) for n in ("past_key", "past_value")}
    rest |= {"count": _i32(2), "beams": None, "indirection": None, "bias": normal(rng, 24)}
    packed: Inputs = {"q": np.concatenate([np.asarray(v) for v in parts.values()], 2), "k": None, "v": None} | rest
    options: dict[str, Any] = {"num_heads": 2, "past_present_share_buffer": 1}
    got = interpreted(node_model("DecoderMaskedMultiHeadAttention", packed, _PRESENTS, **options), packed)
    model = node_model("DecoderMaskedMultiHeadAttention", parts | rest, _PRESENTS, **options)
    compare(got, peer(model, parts | rest))


@pytest.mark.parametrize("masked", [False, True])
def test_decoder_with_the_keys_of_an_encoder(masked: bool) -> None:
    rng = np.random.default_rng(0)
    keys: Inputs = {n: normal(rng, 2, 2, 5, 4) for n in ("k", "v")}
    inputs: Inputs = {"q": normal(rng, 2, 1, 8), **keys, "mask": _flags(rng, 2, 5) if masked else None}
    agree("DecoderMaskedMultiHeadAttention", inputs, num_heads=2)


def test_decoder_without_shared_buffers_appends() -> None:
    rng = np.random.default_rng(0)
    inputs: Inputs = {n: normal(rng, 2, 1, 8) for n in ("q", "k", "v")} | {"mask": None, "added": None}
    inputs |= {f"past_{n}": normal(rng, 2, 2, 5, 4) for n in ("key", "value")}
    got = interpreted(node_model("DecoderMaskedMultiHeadAttention", inputs, _PRESENTS, num_heads=2), inputs)
    other = {"bias": None, **{n: v for n, v in inputs.items() if n not in ("q", "k", "v")}}
    other = {n: inputs[n] for n in ("q", "k", "v")} | other
    compare(got, peer(node_model("MultiHeadAttention", other, _PRESENTS, num_heads=2), other))


# ---- what is refused ---------------------------------------------------------------------------------------------


def _z(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


_QKV: Inputs = {n: _z(2, 3, 8) for n in ("q", "k", "v")}
_XWB: Inputs = {"x": _z(2, 3, 4), "w": _z(4, 24), "b": _z(24)}


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("Attention", _XWB, {}, "num_heads"),
        ("Attention", _XWB, {"num_heads": 0}, "positive"),
        ("Attention", _XWB, {"num_heads": 3}, "multiple"),
        ("Attention", _XWB, {"num_heads": 2.0}, "num_heads"),
        ("Attention", _XWB, {"num_heads": 2, "qkv_hidden_sizes": [8, 16]}, "features"),
        ("Attention", _XWB, {"num_heads": 2, "qkv_hidden_sizes": [4, 8, 12]}, "features"),
        ("Attention", _XWB | {"w": _z(5, 24)}, {"num_heads": 2}, "5"),
        ("Attention", _XWB | {"b": _z(23)}, {"num_heads": 2}, "24"),
        ("Attention", _XWB | {"w": _z(4, 25), "b": _z(25)}, {"num_heads": 2}, "features"),
        ("Attention", _XWB | {"m": _z(5, dtype=np.int32)}, {"num_heads": 2}, "expected"),
        ("Attention", _XWB | {"m": _z(2, 3)}, {"num_heads": 2}, "i32"),
        ("Attention", _XWB | {"m": None, "past": _z(3, 2, 2, 4, 4)}, {"num_heads": 2}, "2"),
        ("Attention", _XWB | {"m": None, "past": _z(2, 2, 3, 4, 4)}, {"num_heads": 2}, "2"),
        ("MultiHeadAttention", {"q": _QKV["q"]}, {"num_heads": 2}, "keys"),
        ("MultiHeadAttention", {"q": _QKV["q"], "k": _QKV["k"]}, {"num_heads": 2}, "values"),
        ("MultiHeadAttention", _QKV | {"k": _z(2, 3, 6)}, {"num_heads": 2}, "4"),
        ("MultiHeadAttention", _QKV | {"v": _z(2, 4, 8)}, {"num_heads": 2}, "3"),
        ("MultiHeadAttention", _QKV | {"b": _z(25)}, {"num_heads": 2}, "24"),
        ("MultiHeadAttention", _QKV | {"b": None, "m": _z(4, dtype=np.int32)}, {"num_heads": 2}, "2"),
        ("MultiHeadAttention", _QKV | {"b": None, "m": None, "a": _z(3, 1, 3, 3)}, {"num_heads": 2}, "2"),
        ("MultiHeadAttention", _QKV | {"b": None, "m": None, "a": None, "p": _z(2, 2, 4, 4)}, {"num_heads": 2},
         "missing"),
        ("MultiHeadAttention", {"q": _z(2, 3, 2, 2, 4)}, {"num_heads": 2}, "3"),
        ("MultiHeadAttention", {"q": _z(2, 3, 2, 3, 4), "k": _z(2, 3, 8)}, {"num_heads": 2}, "hold keys"),
        ("MultiHeadAttention", {n: _z(2, 3, 0) for n in ("q", "k", "v")}, {"num_heads": 2}, "features"),
        ("DecoderMaskedMultiHeadAttention", _QKV, {"num_heads": 2}, "1"),
    ],
)  # fmt: skip
def test_malformed_nodes_are_refused(op: str, inputs: Inputs, attributes: Any, message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        import_onnx(node_model(op, inputs, **attributes))


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("Attention", _XWB, {"num_heads": 2, "do_rotary": 1}, "angles"),
        ("PackedAttention", _XWB | {"t": _z(2, 3, dtype=np.int32), "l": _z(3, dtype=np.int32)}, {"num_heads": 2},
         "packed"),
    ],
)  # fmt: skip
def test_unsupported_forms_say_why(op: str, inputs: Inputs, attributes: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(node_model(op, inputs, **attributes))
