# pyright: basic
"""Functions whose gradients JAX gives too: by family, each with the shapes (or the arrays) that it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = np.ndarray[Any, Any]
Case = tuple[Callable[..., Any], Sequence[Any]]

S, M, V = (3, 4), (4, 5), (4,)
rng = np.random.default_rng(0)


def real(*shape: int) -> Array:
    """Ordinary numbers."""
    return np.asarray(rng.standard_normal(shape))


def positive(*shape: int) -> Array:
    """Numbers above 1/2."""
    return np.abs(real(*shape)) + 0.5


def complexes(*shape: int) -> Array:
    """Ordinary complex numbers."""
    return real(*shape) + 1j * real(*shape)


ROWS = np.array([0, 2, 2, 1])
"""Indices with a duplicate."""
ITEMS = real(6, 4)


def _norm(x: Any, scale: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale


def _step(w: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    return lambda c, x: (jnp.tanh(c @ w + x), c * 2)


def _aliases(a: Any, b: Any) -> Any:
    def step(c: tuple[Any, Any], x: Any) -> tuple[tuple[Any, Any], None]:
        new = jnp.sin(c[0]) * c[1] + x
        return (new, new), None

    return lax.scan(step, (a, b), ITEMS)[0]


def _nest(a: Any, w: Any) -> Any:
    def outer(c: Any, x: Any) -> tuple[Any, Any]:
        return lax.scan(lambda d, _: (jnp.tanh(d @ w), None), c + x, None, length=3)[0], c.sum()

    return lax.scan(outer, jnp.ones(4), a)


ELEMENTWISE: dict[str, Case] = {
    **{
        name: (getattr(jnp, name), [S])
        for name in ("sin", "cos", "tan", "exp", "expm1", "tanh", "sinh", "cosh", "arctan", "arcsinh", "abs", "square")
    },
    **{name: (getattr(jnp, name), [positive(*S)]) for name in ("log", "log1p", "sqrt", "cbrt")},
    "rsqrt": (lax.rsqrt, [positive(*S)]),
    "arcsin": (jnp.arcsin, [real(*S) / 5]),
    "arccos": (jnp.arccos, [real(*S) / 5]),
    "arctanh": (jnp.arctanh, [real(*S) / 5]),
    "arccosh": (jnp.arccosh, [positive(*S) + 1]),
    "logistic": (jax.nn.sigmoid, [S]),
    "erf": (jax.scipy.special.erf, [S]),
    "erfc": (jax.scipy.special.erfc, [S]),
    "erf_inv": (jax.scipy.special.erfinv, [real(*S) / 5]),
    "lgamma": (jax.scipy.special.gammaln, [positive(*S)]),
    "digamma": (jax.scipy.special.digamma, [positive(*S)]),
    "polygamma": (lambda x: jax.scipy.special.polygamma(2, x), [positive(*S)]),
    "zeta": (lambda q: jax.scipy.special.zeta(2.5, q), [positive(*S)]),
    "bessel_i1e": (jax.scipy.special.i1e, [real(*S) * np.array([1, 10, 40, 1e-9])]),
    "arithmetic": (lambda a, b: a + b * a - b / a, [S, positive(*S)]),
    "power": (lambda a, b: a**b, [positive(*S), S]),
    "integer power": (lambda a: a**3, [S]),
    "remainder": (lax.rem, [S, positive(*S)]),
    "atan2": (jnp.arctan2, [S, S]),
    "stop_gradient": (lambda a: a * lax.stop_gradient(jnp.sin(a)), [S]),
    "where": (lambda a, b: jnp.where(a > b, a * a, b), [S, S]),
    "clip": (lambda a: jnp.clip(a, -0.5, 0.5), [S]),
    "gelu": (jax.nn.gelu, [S]),
    "f32": (lambda a: a.astype(jnp.float32).astype(jnp.float64), [S]),
}
"""One function each, and what is made of a few."""

CHOICES: dict[str, Case] = {
    "abs at 0": (jnp.abs, [np.array([0.0, 1, -1])]),
    "sqrt at 0": (jnp.sqrt, [np.array([0.0, 1])]),
    "maximum of equals": (jnp.maximum, [np.array([1.0, 2, 3]), np.array([1.0, 3, 2])]),
    "minimum of equals": (jnp.minimum, [np.array([1.0, 2, 3]), np.array([1.0, 3, 2])]),
    "relu at 0": (jax.nn.relu, [np.array([-1.0, 0, 1])]),
    "clamp at its bounds": (
        lambda x: lax.clamp(jnp.full(3, -1.0), x, jnp.full(3, 1.0)), [np.array([-1.0, 0, 1])],
    ),
    "bounds of clamp": (
        lambda a, x, c: lax.clamp(a, x, c), [np.full(5, -1.0), np.array([-2, -1.0, 0, 1, 2]), np.full(5, 1.0)],
    ),
    "reduce_max of equals": (lambda a: a.max(0), [np.array([[1.0, 2], [1, 3], [0, 3]])]),
    "reduce_min of equals": (lambda a: a.min(), [np.array([1.0, 0, 0, 0])]),
    "max pooling of equals": (
        lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (3,), (1,), "SAME"), [np.array([1.0, 1, 0, 1, 1])],
    ),
    "product with zeros": (lambda a: a.prod(), [np.array([0.0, 2, 3])]),
    "product of two zeros": (lambda a: a.prod(), [np.array([0.0, 2, 0])]),
    "cumulative maximum": (lambda a: lax.cummax(a), [np.array([1.0, 0, 2, 3])]),
}  # fmt: skip
"""Where there is no derivative."""

COMPLEX: dict[str, Case] = {
    "holomorphic": (lambda a: jnp.sin(a) * a / jnp.exp(a), [complexes(*S)]),
    "modulus": (jnp.abs, [complexes(*S)]),
    "parts": (lambda a: a.real * a.imag + jnp.conj(a), [complexes(*S)]),
    "from parts": (lambda a, b: lax.complex(a, b) ** 2, [S, S]),
    "direction": (lambda a: a / jnp.abs(a), [complexes(*S)]),
    "from real": (lambda a: a.astype(jnp.complex128) * 1j, [S]),
    "fft": (jnp.fft.fft, [complexes(*S)]),
    "ifft2": (jnp.fft.ifft2, [complexes(*S)]),
    "rfft2": (jnp.fft.rfft2, [(3, 5)]),
    "irfft even": (jnp.fft.irfft, [complexes(*S)]),
    "irfft odd": (lambda a: jnp.fft.irfft(a, 5), [complexes(*S)]),
}

MOVEMENT: dict[str, Case] = {
    "broadcast": (lambda a: jnp.broadcast_to(a[:, None], (4, 3)) + a[:, None] * jnp.ones((1, 3)), [V]),
    "reshape": (lambda a: a.reshape(2, 6).T, [S]),
    "reverse and stride": (lambda a: a[::-1, ::2], [S]),
    "slice": (lambda a: a[1:3, 0:4:3], [S]),
    "concatenate": (lambda a, b: jnp.concatenate([a, b, a], 0), [S, S]),
    "pad": (lambda a, b: lax.pad(a, b, ((1, -1, 2), (-1, 2, 0))), [S, ()]),
    "pad by less": (lambda a, b: lax.pad(a, b, ((-1, -1, 1), (2, 0, 3))), [S, ()]),
    "dynamic_slice": (lambda a: lax.dynamic_slice(a, (1, 2), (2, 2)), [S]),
    "dynamic_slice twice": (
        lambda a: lax.dynamic_slice(a, (1, 2), (2, 2)) * lax.dynamic_slice(a, (9, 1), (2, 2)), [S],
    ),
    "dynamic_update_slice": (lambda a, b: lax.dynamic_update_slice(a, b, (2, 1)), [S, (2, 2)]),
}  # fmt: skip

CONTRACTION: dict[str, Case] = {
    "dot": (jnp.dot, [S, M]),
    "outer": (jnp.outer, [V, V]),
    "batched": (lambda a, b: jnp.einsum("bij,bkj->bki", a, b), [(2, 3, 4), (2, 5, 4)]),
    "dot_general": (
        lambda a, b: lax.dot_general(a, b, (((1, 3), (2, 0)), ((2,), (1,)))), [(2, 3, 4, 5), (5, 4, 3, 6)],
    ),
    "convolution": (lambda a, k: lax.conv(a, k, (1, 1), "SAME"), [(2, 3, 7, 8), (4, 3, 3, 2)]),
    "strided convolution": (
        lambda a, k: lax.conv_general_dilated(a, k, (2, 3), ((1, 0), (2, 1))), [(2, 3, 7, 8), (4, 3, 3, 2)],
    ),
    "dilated convolution": (
        lambda a, k: lax.conv_general_dilated(a, k, (2, 1), ((1, 0), (2, 1)), (2, 1), (1, 2)),
        [(2, 3, 7, 8), (4, 3, 3, 2)],
    ),
    "grouped convolution": (
        lambda a, k: lax.conv_general_dilated(a, k, (2, 1), "VALID", feature_group_count=2),
        [(2, 4, 7, 8), (6, 2, 3, 2)],
    ),
    "convolution of groups of the batch": (
        lambda a, k: lax.conv_general_dilated(a, k, (1, 2), "VALID", batch_group_count=2),
        [(4, 3, 7, 8), (4, 3, 3, 2)],
    ),
    "channels last, cropped": (
        lambda a, k: lax.conv_general_dilated(
            a, k, (2, 2), ((-1, 0), (2, -1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [(2, 7, 8, 3), (3, 2, 3, 4)],
    ),
}  # fmt: skip

FOLDS: dict[str, Case] = {
    "sum and mean": (lambda a: a.sum(0) * a.mean(1)[0], [S]),
    "maximum": (lambda a: a.max(1), [S]),
    "product": (lambda a: a.prod(1), [S]),
    "argmax": (lambda a: jnp.take_along_axis(a, a.argmax(1)[:, None], 1), [S]),
    "variance": (lambda a: a.var(0) + a.std(), [S]),
    "shared scale": (
        lambda x, g: _norm(_norm(x, g) + x, g), [S, V],
    ),
    "softmax": (jax.nn.softmax, [S]),
    "logsumexp": (jax.nn.logsumexp, [S]),
    "cumsum": (lambda a: jnp.cumsum(a, 1), [S]),
    "cumsum backward": (lambda a: lax.cumsum(a, 0, reverse=True), [S]),
    "cumprod": (lambda a: jnp.cumprod(a, 1), [S]),
    "cummax": (lambda a: lax.cummax(a, 1), [S]),
    "cumlogsumexp": (lambda a: lax.cumlogsumexp(a, 1), [S]),
    "max pooling": (lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME"), [(5, 6)]),
    "min pooling": (
        lambda a: lax.reduce_window(a, jnp.inf, lax.min, (2, 3), (2, 1), ((1, 0), (0, 2))), [(5, 6)],
    ),
    "average pooling": (
        lambda a: lax.reduce_window(a, 0.0, lax.add, (2, 3), (2, 2), ((1, 0), (0, 2)), (1, 2), (2, 1)), [(5, 6)],
    ),
    "sort": (lambda a: jnp.sort(a, 1), [S]),
    "sort together": (lambda a, b: lax.sort((a, b), dimension=0, num_keys=1), [S, S]),
    "top_k": (lambda a: lax.top_k(a, 2)[0], [S]),
}  # fmt: skip

INDEXING: dict[str, Case] = {
    "take": (lambda a: a[ROWS], [S]),
    "take pairs": (lambda a: a[ROWS[:3], ROWS[1:]], [S]),
    "take beyond, clamped": (lambda a: a.at[np.array([0, 7, -9])].get(mode="clip"), [S]),
    "take beyond, filled": (lambda a: a.at[np.array([0, 7])].get(mode="fill", fill_value=0), [S]),
    "set": (lambda a, b: a.at[ROWS].set(b), [S, (4, 4)]),
    "set beyond": (lambda a, b: a.at[np.array([0, 9, 1])].set(b, mode="drop"), [S, S]),
    "add": (lambda a, b: a.at[ROWS].add(b), [S, (4, 4)]),
    "add beyond": (lambda a, b: a.at[np.array([0, 9, 1])].add(b, mode="drop"), [S, S]),
    "max": (lambda a, b: a.at[ROWS].max(b), [S, (4, 4)]),
    "min": (lambda a, b: a.at[:, 1].min(b), [S, (3,)]),
    "multiply": (lambda a, b: a.at[np.array([0, 2])].multiply(b, unique_indices=True), [S, (2, 4)]),
}

LINALG: dict[str, Case] = {
    "cholesky": (lambda a: jnp.linalg.cholesky(a @ a.T + 3 * jnp.eye(4)), [(4, 4)]),
    "complex cholesky": (lambda a: jnp.linalg.cholesky(a @ jnp.conj(a.T) + 3 * jnp.eye(3)), [complexes(3, 3)]),
    **{
        f"triangular_solve {words}": (
            lambda a, b, words=words: lax.linalg.triangular_solve(a, b, **words),
            [np.tril(real(4, 4)) + 4 * np.eye(4) if words["lower"] else np.triu(real(4, 4)) + 4 * np.eye(4), (4, 4)],
        )
        for words in (
            {"left_side": True, "lower": True},
            {"left_side": False, "lower": True},
            {"left_side": True, "lower": False, "transpose_a": True},
            {"left_side": False, "lower": True, "transpose_a": True, "unit_diagonal": True},
        )
    },
}

CONTROL: dict[str, Case] = {
    "cond true": (lambda a, b: lax.cond(a[0, 0] > -9, lambda: jnp.sin(a) * b, lambda: a + 1), [S, S]),
    "cond false": (lambda a, b: lax.cond(a[0, 0] > 9, lambda: jnp.sin(a) * b, lambda: a + 1), [S, S]),
    "cond with a constant": (
        lambda a, b: lax.cond(a[0, 0] > -9, lambda: jnp.sin(a) * b, lambda: jnp.ones_like(a)), [S, S],
    ),
    "switch": (
        lambda a, b: lax.switch(jnp.int32(a[0, 0] > -9) + 1, [lambda: a, lambda: a * b, lambda: b]), [S, S],
    ),
    "scan": (lambda a, w: lax.scan(_step(w), jnp.zeros(4), a), [(6, 4), (4, 4)]),
    "scan backward": (lambda a, w: lax.scan(_step(w), jnp.ones(4), a, reverse=True), [(6, 4), (4, 4)]),
    "scan in scan": (_nest, [(3, 4), (4, 4)]),
    "cond in scan": (
        lambda a, w: lax.scan(
            lambda c, x: (lax.cond(x[0] > 0, lambda: jnp.tanh(c @ w + x), lambda: c * x), c * 2), jnp.ones(4), a
        ),
        [(6, 4), (4, 4)],
    ),
    "swap": (lambda a, b: lax.scan(lambda c, x: ((c[1] * x, c[0] + 1.0), c[0]), (a, b), ITEMS), [V, V]),
    "carried values that are one": (_aliases, [V, V]),
    "fori_loop": (lambda a: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) * a + i, a), [S]),
}  # fmt: skip

FAMILIES: dict[str, dict[str, Case]] = {
    "elementwise": ELEMENTWISE, "choices": CHOICES, "complex": COMPLEX, "movement": MOVEMENT,
    "contraction": CONTRACTION, "folds": FOLDS, "indexing": INDEXING, "linalg": LINALG, "control": CONTROL,
}  # fmt: skip


@cache
def _table() -> list[tuple[str, Case]]:
    return [(name, case) for known in FAMILIES.values() for name, case in known.items()]


def name_of(number: int) -> str:
    """The case of a number."""
    return _table()[number % len(_table())][0]


def function_of(number: int) -> tuple[str, Callable[..., Any], list[Array]]:
    """The function of a number, with its name, and arguments."""
    name, (function, shapes) = _table()[number % len(_table())]
    return name, function, arrays(shapes, number)


def arrays(given: Sequence[Any], seed: int = 0) -> list[Array]:
    """The arguments of a case: its own arrays, and ordinary numbers where it has only shapes."""
    numbers = np.random.default_rng(seed)
    return [np.asarray(numbers.standard_normal(x)) if isinstance(x, tuple) else x for x in given]
