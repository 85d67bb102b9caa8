"""Language transformers in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.baselines.layers import attention, dense, heads, layer_norm
from benchmarks.baselines.weights import Weights

Params = Any
Baseline = tuple[Callable[..., tuple[jax.Array, ...]], Params]
HEAD = 64  # features per head, in every model here


# BERT-base

BERT_EPS = 1e-12


def bert(weights: Weights) -> Baseline:
    net = weights.at("model")

    def block(w: Weights) -> Params:
        return {
            **{name: w.dense(f"attention.self.{name}") for name in ("query", "key", "value")},
            "out": w.dense("attention.output.dense"),
            "attention_norm": w.layer_norm("attention.output.LayerNorm"),
            "up": w.dense("intermediate.dense"),
            "down": w.dense("output.dense"),
            "output_norm": w.layer_norm("output.LayerNorm"),
        }

    tables = net.at("embeddings")
    params = {
        "word": tables["word_embeddings.weight"],
        "position": tables["position_embeddings.weight"],
        "segment": tables["token_type_embeddings.weight"],
        "norm": tables.layer_norm("LayerNorm"),
        "blocks": [block(net.at(f"encoder.layer.{i}")) for i in range(net.count("encoder.layer"))],
        "pooler": net.dense("pooler.dense"),
    }
    return bert_apply, params


def bert_apply(p: Params, input_ids: jax.Array, attention_mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    seq = input_ids.shape[1]
    mask = attention_mask[:, None, None, :] != 0
    x = layer_norm(p["norm"], p["word"][input_ids] + p["segment"][0] + p["position"][:seq], BERT_EPS)
    for block in p["blocks"]:
        y = attention(*(heads(dense(block[name], x), HEAD) for name in ("query", "key", "value")), mask)
        x = layer_norm(block["attention_norm"], x + dense(block["out"], y), BERT_EPS)
        y = jax.nn.gelu(dense(block["up"], x), approximate=False)
        x = layer_norm(block["output_norm"], x + dense(block["down"], y), BERT_EPS)
    return x, jnp.tanh(dense(p["pooler"], x[:, 0]))


# GPT-2 small

GPT2_EPS = 1e-5


def gpt2_params(weights: Weights) -> Params:
    net = weights.at("model.transformer")

    def conv1d(w: Weights, path: str) -> Params:  # GPT-2 keeps its kernels as [in, out] already
        return {"kernel": w[f"{path}.weight"], "bias": w[f"{path}.bias"]}

    def block(w: Weights) -> Params:
        return {
            "before": w.layer_norm("ln_1"),
            "qkv": conv1d(w, "attn.c_attn"),
            "out": conv1d(w, "attn.c_proj"),
            "after": w.layer_norm("ln_2"),
            "up": conv1d(w, "mlp.c_fc"),
            "down": conv1d(w, "mlp.c_proj"),
        }

    # the state dict holds the tied embedding once, under either of its two names
    tied = net["wte.weight"] if "wte.weight" in net else weights["model.lm_head.weight"]
    return {
        "token": tied,
        "position": net["wpe.weight"],
        "blocks": [block(net.at(f"h.{i}")) for i in range(net.count("h"))],
        "norm": net.layer_norm("ln_f"),
    }


def gpt2_block(
    p: Params, x: jax.Array, mask: jax.Array, past: tuple[jax.Array, jax.Array] | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One block; returns its output and its keys and values, `past` included."""
    qkv = dense(p["qkv"], layer_norm(p["before"], x, GPT2_EPS))
    q, k, v = (heads(part, HEAD) for part in jnp.split(qkv, 3, axis=-1))
    if past is not None:
        k, v = jnp.concatenate([past[0], k], axis=2), jnp.concatenate([past[1], v], axis=2)
    x = x + dense(p["out"], attention(q, k, v, mask))
    y = jax.nn.gelu(dense(p["up"], layer_norm(p["after"], x, GPT2_EPS)), approximate=True)
    return x + dense(p["down"], y), k, v


def gpt2_prefill(weights: Weights) -> Baseline:
    return gpt2_prefill_apply, gpt2_params(weights)


def gpt2_prefill_apply(p: Params, input_ids: jax.Array) -> tuple[jax.Array]:
    seq = input_ids.shape[1]
    mask = jnp.tril(jnp.ones((seq, seq), bool))
    x = p["token"][input_ids] + p["position"][:seq]
    for block in p["blocks"]:
        x, _, _ = gpt2_block(block, x, mask, None)
    return (layer_norm(p["norm"], x, GPT2_EPS) @ p["token"].T,)


def gpt2_decode(weights: Weights) -> Baseline:
    return gpt2_decode_apply, gpt2_params(weights)


def gpt2_decode_apply(p: Params, input_ids: jax.Array, **past: jax.Array) -> tuple[jax.Array, ...]:
    seen = past["past_key_0"].shape[2]
    x = p["token"][input_ids] + p["position"][seen]
    mask = jnp.ones((1, seen + 1), bool)
    grown: list[jax.Array] = []
    for i, block in enumerate(p["blocks"]):
        x, k, v = gpt2_block(block, x, mask, (past[f"past_key_{i}"], past[f"past_value_{i}"]))
        grown += [k, v]
    return layer_norm(p["norm"], x, GPT2_EPS) @ p["token"].T, *grown


# Llama

LLAMA_EPS = 1e-6
ROPE_BASE = 10000.0


def llama(weights: Weights) -> Baseline:
    net = weights.at("model.model")

    def block(w: Weights) -> Params:
        attention_names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "o_proj"}
        mlp_names = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
        return {
            "before": w["input_layernorm.weight"],
            **{ours: w.dense(f"self_attn.{theirs}") for ours, theirs in attention_names.items()},
            "after": w["post_attention_layernorm.weight"],
            **{ours: w.dense(f"mlp.{theirs}") for ours, theirs in mlp_names.items()},
        }

    tied = net["embed_tokens.weight"] if "embed_tokens.weight" in net else weights["model.lm_head.weight"]
    params = {
        "token": tied,
        "blocks": [block(net.at(f"layers.{i}")) for i in range(net.count("layers"))],
        "norm": net["norm.weight"],
    }
    return llama_apply, params


def rms_norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    return scale * (x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + LLAMA_EPS))


def rotate(x: jax.Array) -> jax.Array:
    """Rotary position embedding over `[batch, heads, seq, size]`, halves rotated against each other."""
    seq, size = x.shape[2:]
    frequency = ROPE_BASE ** (-jnp.arange(0, size, 2, dtype=x.dtype) / size)
    angle = jnp.arange(seq, dtype=x.dtype)[:, None] * frequency
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    left, right = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


def llama_apply(p: Params, input_ids: jax.Array) -> tuple[jax.Array]:
    seq = input_ids.shape[1]
    mask = jnp.tril(jnp.ones((seq, seq), bool))
    x = p["token"][input_ids]
    for block in p["blocks"]:
        y = rms_norm(block["before"], x)
        q, k, v = (heads(dense(block[name], y), HEAD) for name in ("query", "key", "value"))
        groups = q.shape[1] // k.shape[1]  # query heads that share one key head
        k, v = (jnp.repeat(shared, groups, axis=1) for shared in (rotate(k), v))
        x = x + dense(block["out"], attention(rotate(q), k, v, mask))
        y = rms_norm(block["after"], x)
        x = x + dense(block["down"], jax.nn.silu(dense(block["gate"], y)) * dense(block["up"], y))
    return (rms_norm(p["norm"], x) @ p["token"].T,)
