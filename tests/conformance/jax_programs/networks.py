"""Networks: layers, attention, norms, recurrences, and their gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.conformance.jax_programs.table import integers, normal, program, weight

MLP = [(weight(16, 32), normal(32)), (weight(32, 32), normal(32)), (weight(32, 4), normal(4))]
CNN = {"first": weight(3, 3, 3, 8), "second": weight(3, 3, 8, 16), "dense": weight(256, 10)}
LSTM = {"x": weight(8, 64), "h": weight(16, 64), "bias": normal(64)}
GRU = {"x": weight(8, 48), "h": weight(16, 48), "bias": normal(48)}
BLOCK = {
    "qkv": weight(32, 96), "out": weight(32, 32), "gate": weight(32, 64), "up": weight(32, 64), "down": weight(64, 32),
    "norm1": normal(32), "norm2": normal(32),
}  # fmt: skip


@program(MLP, normal(8, 16))
def mlp(params: Any, x: Any) -> Any:
    """Three dense layers, with ReLU"""
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


@program(MLP, normal(8, 16), integers(0, 4, 8))
def mlp_gradient(params: Any, x: Any, labels: Any) -> Any:
    """Loss and gradients of the MLP under cross-entropy"""

    def loss(p: Any) -> Any:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(mlp(p, x)), labels[:, None], 1))

    return jax.value_and_grad(loss)(params)


@program(CNN, normal(4, 16, 16, 3))
def cnn(params: Any, x: Any) -> Any:
    """Convolutions, pooling and a dense layer"""
    for name in ("first", "second"):
        x = lax.conv_general_dilated(x, params[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ params["dense"]


@program(CNN, normal(4, 16, 16, 3), ulps=64)
def cnn_gradient(params: Any, x: Any) -> Any:
    """Gradients through convolutions and max pooling"""
    return jax.grad(lambda p: jnp.mean(cnn(p, x) ** 2))(params)


@program(normal(2, 8, 9, 9), weight(3, 3, 2, 8), weight(3, 3, 8, 4))
def convolutions(x: Any, grouped: Any, full: Any) -> Any:
    """Grouped, dilated and transposed convolutions"""
    numbers = ("NCHW", "HWIO", "NCHW")
    return (
        lax.conv_general_dilated(x, grouped, (2, 1), "SAME", dimension_numbers=numbers, feature_group_count=4),
        lax.conv_general_dilated(x, full, (1, 1), "VALID", rhs_dilation=(2, 2), dimension_numbers=numbers),
        lax.conv_transpose(x, full, (2, 2), "SAME", dimension_numbers=numbers),
    )


def lstm_cell(params: Any, carry: Any, x: Any) -> Any:
    h, c = carry
    i, f, g, o = jnp.split(x @ params["x"] + h @ params["h"] + params["bias"], 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


@program(LSTM, normal(12, 4, 8))
def lstm(params: Any, xs: Any) -> Any:
    """An LSTM scanned over a sequence"""
    start = (jnp.zeros((xs.shape[1], 16)), jnp.zeros((xs.shape[1], 16)))
    return lax.scan(lambda carry, x: lstm_cell(params, carry, x), start, xs)


@program(LSTM, normal(12, 4, 8), ulps=64)
def lstm_gradient(params: Any, xs: Any) -> Any:
    """Gradients through the LSTM's scan"""
    return jax.grad(lambda p: jnp.sum(lstm(p, xs)[1] ** 2))(params)


@program(GRU, normal(12, 4, 8))
def gru(params: Any, xs: Any) -> Any:
    """A GRU scanned backwards"""

    def step(h: Any, x: Any) -> Any:
        xr, xz, xn = jnp.split(x @ params["x"] + params["bias"], 3, axis=-1)
        hr, hz, hn = jnp.split(h @ params["h"], 3, axis=-1)
        z = jax.nn.sigmoid(xz + hz)
        h = (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn) + z * h
        return h, h

    return lax.scan(step, jnp.zeros((xs.shape[1], 16)), xs, reverse=True)


@program(normal(2, 6, 4, 8), normal(2, 6, 4, 8, scale=0.5), normal(2, 6, 4, 8, scale=2.0))
def causal_attention(q: Any, k: Any, v: Any) -> Any:
    """Attention with a causal mask, by einsum"""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e30)), v)


@program(normal(2, 6, 8, 4), normal(2, 6, 2, 4), normal(2, 6, 2, 4, scale=2.0))
def grouped_query_attention(q: Any, k: Any, v: Any) -> Any:
    """Eight query heads on two of keys and values"""
    grouped = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
    weights = jax.nn.softmax(jnp.einsum("bqgrd,bkgd->bgrqk", grouped, k) * q.shape[-1] ** -0.5, axis=-1)
    return jnp.einsum("bgrqk,bkgd->bqgrd", weights, v).reshape(q.shape)


@program(normal(2, 6, 8, 4), normal(2, 6, 2, 4), normal(2, 6, 2, 4, scale=2.0), normal(1, 8, 6, 6))
def dot_product_attention(q: Any, k: Any, v: Any, bias: Any) -> Any:
    """`jax.nn.dot_product_attention`: causal, with a bias and a mask, with lengths"""
    lengths = jnp.array([4, 6])
    return (
        jax.nn.dot_product_attention(q, k, v, is_causal=True),
        jax.nn.dot_product_attention(q, k, v, bias=bias, mask=bias > -1, scale=0.3),
        jax.nn.dot_product_attention(q, k, v, query_seq_lengths=lengths, key_value_seq_lengths=lengths),
    )


def rotary(x: Any) -> Any:
    angles = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
    sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    a, b = x[..., ::2], x[..., 1::2]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


def rms_norm(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


@program(BLOCK, normal(2, 6, 32), ulps=64)
def transformer_block(params: Any, x: Any) -> Any:
    """RMS norms, rotary attention and SwiGLU"""
    q, k, v = jnp.split(rms_norm(x, params["norm1"]) @ params["qkv"], 3, axis=-1)
    q, k, v = (t.reshape(*t.shape[:2], 4, 8) for t in (q, k, v))
    x = x + jax.nn.dot_product_attention(rotary(q), rotary(k), v, is_causal=True).reshape(x.shape) @ params["out"]
    y = rms_norm(x, params["norm2"])
    return x + (jax.nn.silu(y @ params["gate"]) * (y @ params["up"])) @ params["down"]


@program(normal(2, 4, 16), normal(2, 12, 4, 16), normal(2, 12, 4, 16, scale=2.0), integers(5, 6))
def decode_step(x: Any, keys: Any, values: Any, position: Any) -> Any:
    """One step of decoding with a cache of keys and values"""
    keys = lax.dynamic_update_slice(keys, x[:, None], (0, position, 0, 0))
    values = lax.dynamic_update_slice(values, 2 * x[:, None], (0, position, 0, 0))
    scores = jnp.einsum("bhd,bkhd->bhk", x, keys) / 4
    scores = jnp.where(jnp.arange(keys.shape[1]) <= position, scores, -jnp.inf)
    return jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(scores), values), keys, values


@program(
    {"kernel": weight(3, 3, 3, 8), "scale": normal(8), "bias": normal(8)},
    {"mean": normal(8), "variance": normal(8) ** 2},
    normal(4, 8, 8, 3),
    ulps=256,
)
def batch_norm_step(params: Any, state: Any, x: Any) -> Any:
    """A training step with batch norm: gradients and running statistics"""

    def loss(p: Any) -> Any:
        y = lax.conv_general_dilated(x, p["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        mean, variance = jnp.mean(y, (0, 1, 2)), jnp.var(y, (0, 1, 2))
        running = {"mean": 0.9 * state["mean"] + 0.1 * mean, "variance": 0.9 * state["variance"] + 0.1 * variance}
        y = (y - mean) * lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"]
        return jnp.mean(jax.nn.relu(y) ** 2), running

    (value, running), grads = jax.value_and_grad(loss, has_aux=True)(params)
    return value, running, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


@program(normal(4, 8, 16), normal(16), normal(16))
def norms(x: Any, scale: Any, bias: Any) -> Any:
    """Layer, RMS, group and instance norm, and their gradients"""

    def layer(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias

    groups = x.reshape(4, 8, 4, 4)
    group = jax.nn.standardize(groups, axis=(1, 3), epsilon=1e-5).reshape(x.shape)
    return layer(x), rms_norm(x, scale), group, jax.nn.standardize(x, axis=1), jax.grad(lambda t: layer(t)[0].sum())(x)


@program(normal(32, 8), weight(8, 32), integers(0, 32, 4, 6))
def language_head(embedding: Any, head: Any, tokens: Any) -> Any:
    """Embedding, softmax head and cross-entropy, with gradients"""

    def loss(embedding: Any, head: Any) -> Any:
        scores = jax.nn.log_softmax(embedding[tokens[:, :-1]] @ head)
        return -jnp.take_along_axis(scores, tokens[:, 1:, None], -1).mean()

    return jax.value_and_grad(loss, (0, 1))(embedding, head)


@program(normal(16, 8), weight(8, 4), weight(4, 8, 8))
def mixture_of_experts(x: Any, router: Any, experts: Any) -> Any:
    """Tokens to their two best experts of four"""
    gates, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
    dispatch = jnp.einsum("tk,tke->te", gates / gates.sum(-1, keepdims=True), jax.nn.one_hot(chosen, 4))
    return jnp.einsum("te,teo->to", dispatch, jax.nn.gelu(jnp.einsum("ti,eio->teo", x, experts)))


@program(normal(10, 8), weight(3, 8, 4), integers(2, 3, 3))
def ragged_product(x: Any, experts: Any, sizes: Any) -> Any:
    """A product with a matrix for each group of rows"""
    return lax.ragged_dot(x, experts, sizes)
