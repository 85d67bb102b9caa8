# pyright: basic
"""Models of the corpus as JAX functions of their parameters and inputs: networks, training steps, solvers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = np.ndarray[Any, Any]
Model = tuple[Callable[..., Any], tuple[Any, ...]]


def normal(*shape: int, scale: float = 1.0, seed: int = 0) -> Array:
    """Normal f32 numbers, the same for each shape and seed."""
    return (scale * np.random.default_rng([seed, *shape]).standard_normal(shape)).astype(np.float32)


def weight(*shape: int, seed: int = 0) -> Array:
    """Normal numbers that keep the scale of what they are multiplied with."""
    return normal(*shape, scale=float(np.prod(shape[:-1])) ** -0.5, seed=seed)


def integers(high: int, *shape: int) -> Array:
    """Uniform i32 integers from 0 on, `high` excluded."""
    return np.random.default_rng([high, *shape]).integers(0, high, shape).astype(np.int32)


def dense_layers(*widths: int) -> list[tuple[Array, Array]]:
    """Matrices and biases of dense layers."""
    return [(weight(i, o, seed=n), normal(o, scale=0.1)) for n, (i, o) in enumerate(pairwise(widths))]


def dense(layers: Any, x: Any, act: Any = jax.nn.relu) -> Any:
    """Dense layers with a function between them."""
    for w, b in layers[:-1]:
        x = act(x @ w + b)
    return x @ layers[-1][0] + layers[-1][1]


def rms(x: Any, scale: Any) -> Any:
    """An RMS norm."""
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def mlp_step() -> Model:
    """A step of gradient descent of a classifier under cross-entropy"""

    def step(layers: Any, x: Any, labels: Any) -> Any:
        def loss(p: Any) -> Any:
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(dense(p, x)), labels[:, None], 1))

        value, slope = jax.value_and_grad(loss)(layers)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, layers, slope)

    return step, (dense_layers(16, 32, 32, 4), normal(8, 16), integers(4, 8))


def cnn_step() -> Model:
    """A step of a convolutional network with batch normalization: gradients, momentum, running statistics"""

    def step(p: Any, momentum: Any, running: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            y = lax.conv_general_dilated(x, p["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            mean, variance = jnp.mean(y, (0, 1, 2)), jnp.var(y, (0, 1, 2))
            y = jax.nn.relu((y - mean) * lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"])
            y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            return jnp.mean((y.reshape(len(x), -1) @ p["dense"]) ** 2), 0.9 * running + 0.1 * jnp.stack(
                [mean, variance]
            )

        (value, kept), slope = jax.value_and_grad(loss, has_aux=True)(p)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, slope)
        return value, jax.tree.map(lambda p, m: p - 0.01 * m, p, momentum), momentum, kept

    p = {"kernel": weight(3, 3, 3, 8), "scale": normal(8), "bias": normal(8), "dense": weight(128, 4)}
    return step, (p, {k: np.zeros_like(v) for k, v in p.items()}, np.abs(normal(2, 8)), normal(4, 8, 8, 3))


def gqa_block() -> Model:
    """A block of a language model: grouped-query attention with rotary places, SwiGLU"""

    def rotary(x: Any) -> Any:
        angles = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
        sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
        a, b = x[..., ::2], x[..., 1::2]
        return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

    def block(p: Any, x: Any) -> Any:
        h = rms(x, p["norm1"])
        q = rotary((h @ p["q"]).reshape(2, 12, 4, 8)).reshape(2, 12, 2, 2, 8)
        k, v = jnp.split((h @ p["kv"]).reshape(2, 12, 2, 16), 2, -1)
        scores = jnp.einsum("bqgrd,bkgd->bgrqk", q, rotary(k)) * 8**-0.5
        scores = jnp.where(jnp.tril(jnp.ones((12, 12), bool)), scores, -1e30)
        x = x + jnp.einsum("bgrqk,bkgd->bqgrd", jax.nn.softmax(scores), v).reshape(x.shape) @ p["out"]
        h = rms(x, p["norm2"])
        return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]

    p = {"q": weight(32, 32), "kv": weight(32, 32, seed=1), "out": weight(32, 32, seed=2), "gate": weight(32, 64),
         "up": weight(32, 64, seed=1), "down": weight(64, 32), "norm1": normal(32),
         "norm2": normal(32, seed=1)}  # fmt: skip
    return block, (p, normal(2, 12, 32))


def decode() -> Model:
    """One step of decoding with a cache of keys and values, and the next token by its probability"""

    def step(p: Any, token: Any, keys: Any, values: Any, place: Any, noise: Any) -> Any:
        x = p["words"][token]
        q, k, v = jnp.split((x @ p["qkv"]).reshape(2, 4, 24), 3, -1)
        keys = lax.dynamic_update_slice(keys, k[:, None], (0, place, 0, 0))
        values = lax.dynamic_update_slice(values, v[:, None], (0, place, 0, 0))
        scores = jnp.einsum("bhd,bkhd->bhk", q, keys) / 8**0.5
        scores = jnp.where(jnp.arange(keys.shape[1]) <= place, scores, -jnp.inf)
        x = x + jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(scores), values).reshape(2, 32) @ p["out"]
        best, which = lax.top_k(x @ p["words"].T, 8)
        chosen = jnp.argmax(best - jnp.log(-jnp.log(noise)), -1)
        return jnp.take_along_axis(which, chosen[:, None], 1)[:, 0], keys, values

    p = {"words": normal(50, 32, scale=0.3), "qkv": weight(32, 96), "out": weight(32, 32)}
    cache = normal(2, 16, 4, 8), normal(2, 16, 4, 8, seed=1)
    return step, (p, integers(50, 2), *cache, np.int32(5), np.full((2, 8), 0.3, np.float32))


def experts() -> Model:
    """A mixture of experts: tokens to their two best of four, with a loss of balance"""

    def layer(x: Any, router: Any, up: Any, down: Any) -> Any:
        chances = jax.nn.softmax(x @ router)
        gates, chosen = lax.top_k(chances, 2)
        picked = jax.nn.one_hot(chosen, 4)
        dispatch = jnp.einsum("tk,tke->te", gates / gates.sum(-1, keepdims=True), picked)
        hidden = jax.nn.gelu(jnp.einsum("ti,eih->teh", x, up))
        balance = 4 * jnp.sum(chances.mean(0) * picked.sum(1).mean(0))
        return x + jnp.einsum("te,teh,ehi->ti", dispatch, hidden, down), balance

    return layer, (normal(16, 16), weight(16, 4), weight(4, 16, 32), weight(4, 32, 16))


def lstm_gradient() -> Model:
    """Gradients through the scan of an LSTM, clipped by their norm"""

    def cell(p: Any, carry: Any, x: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(x @ p["x"] + h @ p["h"] + p["bias"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def gradient(p: Any, xs: Any) -> Any:
        def loss(p: Any) -> Any:
            start = jnp.zeros((xs.shape[1], 8)), jnp.zeros((xs.shape[1], 8))
            return jnp.sum(lax.scan(lambda carry, x: cell(p, carry, x), start, xs)[1] ** 2)

        slope = jax.grad(loss)(p)
        size = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(slope)))
        return jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (size + 1e-6)), slope)

    return gradient, ({"x": weight(8, 32), "h": weight(8, 32, seed=1), "bias": normal(32)}, normal(6, 4, 8))


def state_space() -> Model:
    """A selective state space, as in Mamba: a scan whose decay depends on the input"""

    def layer(p: Any, x: Any) -> Any:
        u, gate = jnp.split(x @ p["in"], 2, -1)
        u = jax.nn.silu(lax.conv_general_dilated(u, p["conv"], (1,), [(3, 0)], dimension_numbers=("NWC", "WIO", "NWC"),
                                                 feature_group_count=16))  # fmt: skip
        step = jax.nn.softplus(u @ p["step"] + p["bias"])
        b, c = jnp.split(u @ p["bc"], 2, -1)
        decay = jnp.exp(-step[..., None] * jnp.exp(p["a"]))

        def one(h: Any, now: Any) -> Any:
            d, s, v, bi, ci = now
            h = d * h + (s * v)[..., None] * bi[:, None]
            return h, jnp.einsum("bdn,bn->bd", h, ci)

        parts = jax.tree.map(lambda t: jnp.swapaxes(t, 0, 1), (decay, step, u, b, c))
        y = jnp.swapaxes(lax.scan(one, jnp.zeros((2, 16, 4)), parts)[1], 0, 1)
        return x + ((y + u * p["d"]) * jax.nn.silu(gate)) @ p["out"]

    p = {"in": weight(8, 32), "conv": weight(4, 1, 16), "step": weight(16, 16), "bias": normal(16), "bc": weight(16, 8),
         "a": normal(16, 4), "d": normal(16), "out": weight(16, 8)}  # fmt: skip
    return layer, (p, normal(2, 10, 8))


def flow() -> Model:
    """A normalizing flow: affine couplings with their log determinants, and a density"""

    def density(couplings: Any, x: Any) -> Any:
        total = jnp.zeros(len(x))
        for n, layers in enumerate(couplings):
            a, b = jnp.split(x, 2, -1)
            scale, shift = jnp.split(dense(layers, a, jnp.tanh), 2, -1)
            scale = jnp.tanh(scale)
            x = jnp.concatenate([b * jnp.exp(scale) + shift, a] if n % 2 else [a, b * jnp.exp(scale) + shift], -1)
            total = total + scale.sum(-1)
        return total - 0.5 * (x**2 + jnp.log(2 * jnp.pi)).sum(-1)

    return density, ([dense_layers(4, 16, 8) for _ in range(4)], normal(16, 8))


def nerf() -> Model:
    """A radiance field: places as waves, a network, colours added up along rays"""

    def render(layers: Any, start: Any, direction: Any) -> Any:
        depth = jnp.linspace(0.5, 3.0, 12)
        places = start[:, None] + depth[:, None] * direction[:, None]
        waves = (places[..., None] * 2.0 ** jnp.arange(4)).reshape(8, 12, 12)
        out = dense(layers, jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], -1))
        colour, thick = jax.nn.sigmoid(out[..., :3]), 1 - jnp.exp(-jax.nn.softplus(out[..., 3]) * 0.2)
        clear = jnp.cumprod(jnp.concatenate([jnp.ones((8, 1)), 1 - thick + 1e-10], -1), -1)[:, :-1]
        return ((thick * clear)[..., None] * colour).sum(1), (thick * clear * depth).sum(1)

    return render, (dense_layers(24, 32, 32, 4), normal(8, 3), normal(8, 3, seed=1))


def denoiser() -> Model:
    """A step of diffusion: time as waves, a small U-Net with group norms, the next image"""

    def conv(x: Any, kernel: Any, stride: int = 1) -> Any:
        return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def grouped(x: Any) -> Any:
        y = x.reshape(*x.shape[:-1], 2, -1)
        y = (y - y.mean((1, 2, 4), keepdims=True)) * lax.rsqrt(y.var((1, 2, 4), keepdims=True) + 1e-5)
        return jax.nn.silu(y.reshape(x.shape))

    def step(p: Any, x: Any, time: Any, noise: Any) -> Any:
        waves = time[:, None] * 2.0 ** -jnp.arange(4.0)
        t = dense(p["time"], jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], -1), jax.nn.silu)
        one = grouped(conv(x, p["one"]) + t[:, None, None])
        two = grouped(conv(one, p["two"], 2))
        up = jax.image.resize(two, one.shape, "bilinear")
        eps = conv(grouped(conv(jnp.concatenate([one, up], -1), p["three"])), p["four"])
        alpha = (jnp.cos(time * 1.5) ** 2)[:, None, None, None]
        guess = jnp.clip((x - jnp.sqrt(1 - alpha) * eps) / jnp.sqrt(alpha + 1e-4), -1, 1)
        return jnp.sqrt(alpha) * guess + jnp.sqrt(1 - alpha) * noise

    p = {"one": weight(3, 3, 3, 8), "two": weight(3, 3, 8, 8), "three": weight(3, 3, 16, 8), "four": weight(3, 3, 8, 3),
         "time": dense_layers(8, 16, 8)}  # fmt: skip
    return step, (p, normal(2, 8, 8, 3), np.array([0.2, 0.8], np.float32), normal(2, 8, 8, 3, seed=1))


def kalman() -> Model:
    """A Kalman filter over a series: products and solutions of small systems in a scan"""

    def run(a: Any, h: Any, q: Any, r: Any, seen: Any) -> Any:
        def step(carry: Any, z: Any) -> Any:
            mean, cov = carry
            mean, cov = a @ mean, a @ cov @ a.T + q
            gain = jnp.linalg.solve(h @ cov @ h.T + r, h @ cov).T
            mean = mean + gain @ (z - h @ mean)
            return (mean, cov - gain @ h @ cov), mean

        return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), seen)

    one = np.eye(4, dtype=np.float32)
    return run, (one + 0.1 * weight(4, 4), weight(2, 4), 0.1 * one, 0.2 * one[:2, :2], normal(8, 2))


def adam_step() -> Model:
    """A step of Adam for a layer norm and an attention, with decay of weights and a schedule"""

    def model(p: Any, x: Any) -> Any:
        y = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]
        q, k, v = jnp.split(y @ p["qkv"], 3, -1)
        return x + jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / 4) @ v

    def step(p: Any, m: Any, v: Any, count: Any, x: Any, y: Any) -> Any:
        slope = jax.grad(lambda p: jnp.mean((model(p, x) - y) ** 2))(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, slope)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, slope)
        rate = 1e-3 * jnp.minimum(1.0, count / 100) / (1 - 0.9 ** (count + 1))

        def moved(p: Any, m: Any, v: Any) -> Any:
            return p - rate * (m / (jnp.sqrt(v / (1 - 0.99 ** (count + 1))) + 1e-8) + 0.01 * p)

        return jax.tree.map(moved, p, m, v), m, v

    p = {"scale": normal(16, scale=0.1) + 1, "bias": normal(16, scale=0.1), "qkv": weight(16, 48)}
    zeros = {k: np.zeros_like(w) for k, w in p.items()}
    return step, (p, zeros, zeros, np.float32(7), normal(2, 6, 16), normal(2, 6, 16, seed=1))


def policy_gradient() -> Model:
    """Advantages by a reversed scan, and the clipped loss of a policy with its gradient"""

    def update(layers: Any, seen: Any, actions: Any, before: Any, rewards: Any, values: Any, ended: Any) -> Any:
        def back(carry: Any, now: Any) -> Any:
            advantage, following = carry
            reward, value, end = now
            keep = 1.0 - end
            advantage = reward + 0.99 * following * keep - value + 0.99 * 0.95 * keep * advantage
            return (advantage, value), advantage

        _, advantage = lax.scan(back, (0.0, 0.0), (rewards, values, ended), reverse=True)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)

        def loss(p: Any) -> Any:
            logs = jax.nn.log_softmax(dense(p, seen, jnp.tanh))
            ratio = jnp.exp(jnp.take_along_axis(logs, actions[:, None], 1)[:, 0] - before)
            clipped = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
            return -clipped.mean() + 0.01 * (jnp.exp(logs) * logs).sum(-1).mean()

        return jax.value_and_grad(loss)(layers)

    ended = (np.arange(16) % 5 == 4).astype(np.float32)
    series = normal(16, scale=0.1) - 1.4, normal(16, seed=1), normal(16, seed=2)
    return update, (dense_layers(6, 16, 4), normal(16, 6), integers(4, 16), *series, ended)


MODELS: Mapping[str, Callable[[], Model]] = {
    make.__name__: make
    for make in (
        mlp_step, cnn_step, gqa_block, decode, experts, lstm_gradient, state_space, flow, nerf, denoiser, kalman,
        adam_step, policy_gradient,
    )
}  # fmt: skip
