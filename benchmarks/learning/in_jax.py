"""The networks in JAX, trained with optax: a step is a function of parameters, state and a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import gcomp
from benchmarks.learning.data import SHADES, batches, tokens

Tree = Any

OPTIMIZERS: dict[str, Callable[[], optax.GradientTransformation]] = {
    "SGD": lambda: optax.sgd(0.02, momentum=0.9),
    "AdamW": lambda: optax.adamw(2e-3, weight_decay=1e-2),
}


WAYS = ("eager", "gcomp", "jax.jit")


def curve(network: str, optimizer: str, way: str, steps: int, order: int = 0) -> list[float]:
    """The losses of a training: the step op by op, or under `gcomp.jit` or `jax.jit`."""
    make, loss, prepare = NETWORKS[network]
    rule = OPTIMIZERS[optimizer]()

    def step(params: Tree, state: Tree, moments: Tree, x: Any, y: Any) -> Any:
        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state, x, y)
        updates, moments = rule.update(grads, moments, params)
        return optax.apply_updates(params, updates), state, moments, value

    jits: Any = {"gcomp": gcomp.jit, "jax.jit": jax.jit}
    run = jits[way](step, donate_argnums=(0, 1, 2)) if way in jits else step
    params, state = jax.tree.map(jnp.asarray, make(np.random.default_rng(0)))
    moments, losses = rule.init(params), list[float]()
    for images, labels in batches(steps, order):
        params, state, moments, value = run(params, state, moments, jnp.asarray(prepare(images)), jnp.asarray(labels))
        losses.append(float(value))
    return losses


# ---- layers ---------------------------------------------------------------------------------------------------------


def _weight(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * np.prod(shape[:-1]) ** -0.5).astype(np.float32)


def _dense(rng: np.random.Generator, inputs: int, outputs: int) -> Tree:
    return {"w": _weight(rng, inputs, outputs), "b": np.zeros(outputs, np.float32)}


def _apply(layer: Tree, x: Any) -> Any:
    return x @ layer["w"] + layer["b"]


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


# ---- a multilayer perceptron ----------------------------------------------------------------------------------------


def make_mlp(rng: np.random.Generator) -> tuple[Tree, Tree]:
    return [_dense(rng, a, b) for a, b in ((64, 64), (64, 64), (64, 10))], ()


def mlp_loss(params: Tree, state: Tree, x: Any, y: Any) -> tuple[Any, Tree]:
    for layer in params[:-1]:
        x = jax.nn.relu(_apply(layer, x))
    return _cross_entropy(_apply(params[-1], x), y), state


# ---- a residual network with batch norm -----------------------------------------------------------------------------


CONVOLUTIONS = ("stem", "1a", "1b", "2a", "2b")


def make_resnet(rng: np.random.Generator) -> tuple[Tree, Tree]:
    ones, zeros = np.ones(16, np.float32), np.zeros(16, np.float32)
    inputs = dict.fromkeys(CONVOLUTIONS, 16) | {"stem": 1}
    layers = {n: {"w": _weight(rng, 3, 3, inputs[n], 16), "scale": ones, "bias": zeros} for n in CONVOLUTIONS}
    state = {n: {"mean": zeros, "variance": ones} for n in CONVOLUTIONS}
    return {"head": _dense(rng, 16, 10), **layers}, state


def _normalized(layer: Tree, running: Tree, x: Any) -> tuple[Any, Tree]:
    """A convolution and a batch norm, and its running statistics after it."""
    x = lax.conv_general_dilated(x, layer["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    after = {"mean": 0.9 * running["mean"] + 0.1 * mean, "variance": 0.9 * running["variance"] + 0.1 * variance}
    return (x - mean) * lax.rsqrt(variance + 1e-5) * layer["scale"] + layer["bias"], after


def resnet_loss(params: Tree, state: Tree, x: Any, y: Any) -> tuple[Any, Tree]:
    after: Tree = {}

    def layer(name: str, x: Any) -> Any:
        x, after[name] = _normalized(params[name], state[name], x)
        return x

    x = jax.nn.relu(layer("stem", x))
    for block in "12":
        x = jax.nn.relu(x + layer(f"{block}b", jax.nn.relu(layer(f"{block}a", x))))
    return _cross_entropy(_apply(params["head"], x.mean((1, 2))), y), after


# ---- a transformer of two layers, that predicts the next pixel ------------------------------------------------------


WIDTH, HEADS = 32, 4


def make_transformer(rng: np.random.Generator) -> tuple[Tree, Tree]:
    def norm() -> Tree:
        return {"scale": np.ones(WIDTH, np.float32), "bias": np.zeros(WIDTH, np.float32)}

    def layer() -> Tree:
        w = WIDTH
        shapes = {"qkv": (w, 3 * w), "out": (w, w), "up": (w, 4 * w), "down": (4 * w, w)}
        return {"norm1": norm(), "norm2": norm(), **{n: _dense(rng, *shape) for n, shape in shapes.items()}}

    embeddings = {"tokens": _weight(rng, SHADES, WIDTH), "places": _weight(rng, 64, WIDTH)}
    return {**embeddings, "layers": [layer(), layer()], "norm": norm(), "head": _dense(rng, WIDTH, SHADES)}, ()


def _layer_norm(norm: Tree, x: Any) -> Any:
    return jax.nn.standardize(x, epsilon=1e-5) * norm["scale"] + norm["bias"]


def transformer_loss(params: Tree, state: Tree, x: Any, y: Any) -> tuple[Any, Tree]:
    del y
    h = params["tokens"][x[:, :-1]] + params["places"][: x.shape[1] - 1]
    for layer in params["layers"]:
        parts = jnp.split(_apply(layer["qkv"], _layer_norm(layer["norm1"], h)), 3, axis=-1)
        q, k, v = (p.reshape(*p.shape[:2], HEADS, WIDTH // HEADS) for p in parts)
        h = h + _apply(layer["out"], jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(h.shape))
        h = h + _apply(layer["down"], jax.nn.gelu(_apply(layer["up"], _layer_norm(layer["norm2"], h))))
    return _cross_entropy(_apply(params["head"], _layer_norm(params["norm"], h)), x[:, 1:]), state


NETWORKS: dict[str, tuple[Any, Any, Callable[[np.ndarray], np.ndarray]]] = {
    "MLP": (make_mlp, mlp_loss, lambda images: images.reshape(len(images), -1)),
    "ResNet": (make_resnet, resnet_loss, lambda images: images.transpose(0, 2, 3, 1)),
    "transformer": (make_transformer, transformer_loss, tokens),
}
"""Name -> makes parameters and state, the loss and the state after it, and what of the images it takes."""
