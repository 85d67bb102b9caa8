"""The layers the baselines share."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Params = Any  # a pytree of arrays


def dense(p: Params, x: jax.Array) -> jax.Array:
    y = x @ p["kernel"]
    return y + p["bias"] if "bias" in p else y


def layer_norm(p: Params, x: jax.Array, eps: float) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + eps) * p["scale"] + p["bias"]


def conv(p: Params, x: jax.Array, stride: int = 1, padding: int = 0, groups: int = 1) -> jax.Array:
    """NHWC convolution with an HWIO kernel and the same stride and padding on every side."""
    y = lax.conv_general_dilated(
        x,
        p["kernel"],
        window_strides=(stride, stride),
        padding=[(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    return y + p["bias"] if "bias" in p else y


def batch_norm(p: Params, x: jax.Array, eps: float = 1e-5) -> jax.Array:
    return (x - p["mean"]) * (lax.rsqrt(p["var"] + eps) * p["scale"]) + p["bias"]


def max_pool(x: jax.Array, window: int, stride: int, padding: int = 0) -> jax.Array:
    spatial = (padding, padding)
    return lax.reduce_window(
        x, -jnp.inf, lax.max, (1, window, window, 1), (1, stride, stride, 1), ((0, 0), spatial, spatial, (0, 0))
    )


def nhwc(x: jax.Array) -> jax.Array:
    return x.transpose(0, 2, 3, 1)


def heads(x: jax.Array, size: int) -> jax.Array:
    """`[batch, seq, features]` to `[batch, heads, seq, size]`."""
    batch, seq, _ = x.shape
    return x.reshape(batch, seq, -1, size).transpose(0, 2, 1, 3)


def attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """Softmax attention over `[batch, heads, seq, size]`; `mask` is true where a key may be seen.

    Returns `[batch, seq, heads * size]`.
    """
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(q.shape[-1]).astype(q.dtype)
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    out = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)
    batch, _, seq, _ = out.shape
    return out.transpose(0, 2, 1, 3).reshape(batch, seq, -1)
