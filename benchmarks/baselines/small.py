"""The small workloads in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.baselines.layers import dense, layer_norm
from benchmarks.baselines.weights import Weights

Params = Any
Baseline = tuple[Callable[..., tuple[jax.Array, ...]], Params]


def lstm(weights: Weights) -> Baseline:
    w = weights.at("lstm")
    names = {"input": "weight_ih", "hidden": "weight_hh", "input_bias": "bias_ih", "hidden_bias": "bias_hh"}
    params = [
        {
            ours: w[f"{theirs}_l{i}"].T.copy() if "weight" in theirs else w[f"{theirs}_l{i}"]
            for ours, theirs in names.items()
        }
        for i in range(2)
    ]
    return lstm_apply, params


def lstm_layer(p: Params, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """One layer over `[seq, batch, features]`: the outputs of every step, the final hidden and cell state."""

    def cell(state: tuple[jax.Array, jax.Array], x_t: jax.Array):
        h, c = state
        gates = x_t @ p["input"] + p["input_bias"] + h @ p["hidden"] + p["hidden_bias"]
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], p["hidden"].shape[0]), x.dtype)
    (h, c), y = lax.scan(cell, (zero, zero), x)
    return y, h, c


def lstm_apply(p: Params, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    y = x.transpose(1, 0, 2)
    hidden, cell = [], []
    for layer in p:
        y, h, c = lstm_layer(layer, y)
        hidden.append(h)
        cell.append(c)
    return y.transpose(1, 0, 2), jnp.stack(hidden), jnp.stack(cell)


def mlp(weights: Weights) -> Baseline:
    return mlp_apply, [weights.dense(f"layers.{i}") for i in (0, 2, 4)]


def mlp_apply(p: Params, x: jax.Array) -> tuple[jax.Array]:
    *inner, last = p
    for layer in inner:
        x = jax.nn.relu(dense(layer, x))
    return (dense(last, x),)


def elementwise(weights: Weights) -> Baseline:
    return elementwise_apply, {}


def elementwise_apply(p: Params, x: jax.Array) -> tuple[jax.Array]:
    h = x * 1.5 + 0.25
    h = h * jax.nn.sigmoid(h)
    h = jax.nn.relu(h) - 0.5 * x
    return (jnp.sqrt(h * h + 1.0),)


def softmax_layernorm(weights: Weights) -> Baseline:
    return softmax_layernorm_apply, weights.layer_norm("norm")


def softmax_layernorm_apply(p: Params, x: jax.Array) -> tuple[jax.Array]:
    return (layer_norm(p, jax.nn.softmax(x, axis=-1), 1e-5),)
