# pyright: basic
"""Random JAX functions: a few steps, each a function of `jax.numpy` or `jax.lax` of earlier values, on small shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = np.ndarray[Any, Any]
Step = Callable[..., Any]
_SHAPES = ((3,), (2, 3), (3, 2), (4, 3), (2, 3, 4), ())

UNARY: dict[str, Step] = {
    "sin": jnp.sin, "cos": jnp.cos, "tanh": jnp.tanh, "exp": lambda x: jnp.exp(-x * x), "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus, "gelu": jax.nn.gelu, "silu": jax.nn.silu, "sqrt": lambda x: jnp.sqrt(x * x + 0.5),
    "log": lambda x: jnp.log1p(x * x), "rsqrt": lambda x: lax.rsqrt(x * x + 1), "erf": lax.erf, "abs": jnp.abs,
    "square": jnp.square, "arctan": jnp.arctan, "arcsinh": jnp.arcsinh, "neg": jnp.negative, "cube": lambda x: x**3,
    "clip": lambda x: jnp.clip(x, -0.7, 0.8), "floor": lambda x: x + jnp.floor(x), "sign": lambda x: x * jnp.sign(x),
    "lgamma": lambda x: lax.lgamma(x * x + 1), "cosh": lambda x: jnp.cosh(jnp.tanh(x)),
    "complex": lambda x: jnp.abs(lax.complex(x, jnp.cos(x)) ** 2), "stop": lambda x: x * lax.stop_gradient(x),
    "remat": lambda x: jax.checkpoint(lambda y: jnp.sin(y) * y)(x),
    "f32": lambda x: (x * 2).astype(jnp.float64),
}  # fmt: skip
BINARY: dict[str, Step] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": lambda x, y: x / (y * y + 1), "max": jnp.maximum,
    "min": jnp.minimum, "atan2": lambda x, y: jnp.arctan2(x, y * y + 0.3), "pow": lambda x, y: (x * x + 0.5) ** y,
    "where": lambda x, y: jnp.where(x > y, x * y, jnp.sin(y)), "hypot": lambda x, y: jnp.sqrt(x * x + y * y + 0.1),
    "logaddexp": jnp.logaddexp, "rem": lambda x, y: lax.rem(x, y * y + 0.5),
    # Not where sums are equal but for rounding, as those of a value and of its transpose.
    "cond": lambda x, y: lax.cond(x.sum() > y.sum() + 0.37, lambda: x * y, lambda: jnp.cos(x) - y),
    "fori": lambda x, y: lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c) * y + i, x),
    "outer": lambda x, y: jnp.tensordot(x.reshape(-1)[:3], y.reshape(-1)[:2], 0),
    "concat": lambda x, y: jnp.concatenate([x.reshape(-1), y.reshape(-1)]),
    "set": lambda x, y: x.reshape(-1).at[np.array([0, 0])].set(y.reshape(-1)[:1].repeat(2) * 2),
    "add at": lambda x, y: x.reshape(-1).at[np.array([0, 0, -1])].add(y.reshape(-1)[:1].repeat(3)),
    "max at": lambda x, y: x.reshape(-1).at[np.array([0, 0, -1])].max(jnp.arange(3) * y.reshape(-1)[0]),
}  # fmt: skip
SHAPED: dict[str, tuple[int, Step]] = {
    "transpose": (2, lambda x: jnp.swapaxes(x, 0, 1)), "reverse": (1, lambda x: jnp.flip(x, 0)),
    "flatten": (1, lambda x: x.reshape(-1)), "slice": (1, lambda x: x[1:]), "stride": (1, lambda x: x[::2]),
    "pad": (1, lambda x: lax.pad(x, x.sum(), ((1, -1, 1),) + ((0, 0, 0),) * (x.ndim - 1))),
    "sum": (1, lambda x: x.sum(0)), "mean": (1, lambda x: x.mean(-1)), "max of": (1, lambda x: x.max(0)),
    "min of": (1, lambda x: x.min(-1)), "prod": (1, lambda x: x.prod(0)), "var": (1, lambda x: x.var(-1)),
    "logsumexp": (1, lambda x: jax.nn.logsumexp(x, 0)), "softmax": (1, lambda x: jax.nn.softmax(x, -1)),
    "log_softmax": (1, lambda x: jax.nn.log_softmax(x, -1)), "cumsum": (1, lambda x: jnp.cumsum(x, 0)),
    "cumprod": (1, lambda x: jnp.cumprod(x, -1)), "cummax": (1, lambda x: lax.cummax(x, 0)),
    "sort": (1, lambda x: jnp.sort(x, -1)), "argsort": (1, lambda x: jnp.take_along_axis(x, jnp.argsort(-x, 0), 0)),
    "top_k": (1, lambda x: lax.top_k(x, 1)[0]), "take": (1, lambda x: x[np.array([0, -1, 0])]),
    "norm": (1, lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-3)),
    "dynamic": (1, lambda x: lax.dynamic_slice_in_dim(x, jnp.argmax(x.reshape(-1)), 1)),
    "update": (1, lambda x: lax.dynamic_update_slice_in_dim(x, jnp.sin(x[:1]), 1, 0)),
    "scan": (2, lambda x: lax.scan(lambda c, a: (jnp.tanh(c + a), c * a), x[0] * 0 + 1, x)[1]),
    "scan back": (1, lambda x: lax.scan(lambda c, a: (c * 0.5 + a, jnp.sin(c)), x.mean(0), x, reverse=True)[0]),
    "map": (1, lambda x: lax.map(lambda a: jnp.sin(a) * a, x)),
    "max pool": (1, lambda x: lax.reduce_window(x, -jnp.inf, lax.max, _window(x), (1,) * x.ndim, "SAME")),
    "sum pool": (1, lambda x: lax.reduce_window(x, 0.0, lax.add, _window(x), (2,) * x.ndim, "SAME")),
    "gram": (2, lambda x: jnp.einsum("i...,j...->ij", x, x)), "matmul": (2, lambda x: x @ jnp.swapaxes(x, -1, -2)),
    "conv": (2, lambda x: lax.conv(x.reshape(1, 1, x.shape[0], -1), x.reshape(1, 1, 1, -1)[..., :2], (1, 1), "SAME")),
    "rfft": (1, lambda x: jnp.real(jnp.fft.irfft(jnp.fft.rfft(x) * (1 + 2j), x.shape[-1]))),
    "cholesky": (2, lambda x: jnp.linalg.cholesky(_gram(x))), "solve": (2, lambda x: _solve(x)),
}  # fmt: skip
"""Step -> the least rank that it takes, and what it does."""


def _window(x: Any) -> tuple[int, ...]:
    return (2,) + (1,) * (x.ndim - 1)


def _gram(x: Any) -> Any:
    flat = x.reshape(x.shape[0], -1)
    return flat @ flat.T + jnp.eye(x.shape[0])


def _solve(x: Any) -> Any:
    flat = x.reshape(x.shape[0], -1)
    lower = jnp.tril(_gram(x))
    return lax.linalg.triangular_solve(lower, flat, left_side=True, lower=True)


def function_of(seed: int, steps: int = 6) -> tuple[Callable[..., Any], list[Array], list[str]]:
    """The function of a seed, arguments for it, and the names of its steps."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 3))
    args = [np.asarray(rng.standard_normal(_SHAPES[rng.integers(len(_SHAPES))])) for _ in range(count)]
    shapes = [x.shape for x in args]
    plan: list[tuple[str, Step, tuple[int, ...]]] = []
    while len(plan) < steps:
        name, step, places = _draw(rng, shapes)
        made = jax.eval_shape(step, *(jax.ShapeDtypeStruct(shapes[i], jnp.float64) for i in places))
        if made.dtype == jnp.float64 and 0 < made.size <= 64 and made.ndim <= 4:
            plan.append((name, step, places))
            shapes.append(made.shape)

    def function(*values: Any) -> list[Any]:
        known, used = list(values), set[int]()
        for _, step, places in plan:
            known.append(step(*(known[i] for i in places)))
            used.update(places)
        return [x for i, x in enumerate(known) if i not in used]

    return function, args, [name for name, _, _ in plan]


def _draw(rng: np.random.Generator, shapes: Sequence[tuple[int, ...]]) -> tuple[str, Step, tuple[int, ...]]:
    # Mostly the latest value, so that steps chain.
    first = len(shapes) - 1 if rng.random() < 0.6 else int(rng.integers(len(shapes)))
    kind = rng.random()
    if kind < 0.3:
        name = _choose(rng, list(UNARY))
        return name, UNARY[name], (first,)
    if kind < 0.55:
        same = [i for i, s in enumerate(shapes) if s == shapes[first]]
        name = _choose(rng, list(BINARY))
        return name, BINARY[name], (first, int(same[rng.integers(len(same))]))
    fitting = [name for name, (least, _) in SHAPED.items() if len(shapes[first]) >= least and shapes[first][0] > 1]
    if not fitting:
        return "sin", jnp.sin, (first,)
    name = _choose(rng, fitting)
    return name, SHAPED[name][1], (first,)


def _choose(rng: np.random.Generator, names: Sequence[str]) -> str:
    return names[int(rng.integers(len(names)))]
