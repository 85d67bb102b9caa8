"""What networks are made of: convolutions, pooling, norms, attention, activations, random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gcomp import ops
from gcomp.errors import UnsupportedError, UsageError

from .agreement import agree, array, at_once, traced

RNG = np.random.default_rng(0)


def of(*shape: int) -> np.ndarray[Any, Any]:
    return array(RNG, shape, "float64", edges=False)


X, Q, K, V = of(3, 5), of(2, 4, 6), of(2, 5, 6), of(2, 5, 3)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gaussian(x: Any) -> Any:
    return x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2


def normalized(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attended(q: Any, k: Any, v: Any, mask: Any = 0.0, scale: float = 6**-0.5) -> Any:
    return softmax(scale * q @ k.swapaxes(-1, -2) + mask) @ v


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (ops.softmax, softmax),
    "softmax along 0": (lambda x: ops.softmax(x, 0), lambda x: softmax(x.T).T),
    "log_softmax": (ops.log_softmax, lambda x: np.log(softmax(x))),
    "logsumexp": (ops.logsumexp, lambda x: np.log(np.exp(x).sum(-1))),
    "relu": (ops.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (ops.leaky_relu, lambda x: np.where(x < 0, 0.01 * x, x)),
    "elu": (ops.elu, lambda x: np.where(x < 0, np.expm1(x), x)),
    "silu": (ops.silu, lambda x: x / (1 + np.exp(-x))),
    "softplus": (ops.softplus, lambda x: np.log1p(np.exp(x))),
    "gelu": (ops.gelu, gaussian),
    "gelu by tanh": (
        lambda x: ops.gelu(x, approximate="tanh"),
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "layer_norm": (ops.layer_norm, normalized),
    "layer_norm, scaled": (lambda x: ops.layer_norm(x, x[0], x[1]), lambda x: normalized(x) * x[0] + x[1]),
    "rms_norm": (lambda x: ops.rms_norm(x, x[0]), lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * x[0]),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_norms(name: str) -> None:
    function, expected = ACTIVATIONS[name]
    for a, b in zip(at_once(function, X), traced(function, X), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, expected(X), rtol=1e-12, atol=1e-14)


def test_attention() -> None:
    keeps, added = RNG.random((4, 5)) < 0.7, of(4, 5)
    keeps[:, 0] = True
    hidden = np.where(np.tri(4, 5, dtype=bool), 0, -np.inf)
    cases = [
        (lambda q, k, v: ops.attention(q, k, v), attended(Q, K, V)),
        (lambda q, k, v: ops.attention(q, k, v, scale=0.5), attended(Q, K, V, scale=0.5)),
        (lambda q, k, v: ops.attention(q, k, v, added), attended(Q, K, V, added)),
        (lambda q, k, v: ops.attention(q, k, v, keeps), attended(Q, K, V, np.where(keeps, 0, -np.inf))),
        (lambda q, k, v: ops.attention(q, k, v, causal=True), attended(Q, K, V, hidden)),
        (lambda q, k, v: ops.attention(q, k, v, added, causal=True), attended(Q, K, V, hidden + added)),
    ]
    for function, expected in cases:
        for got in (at_once(function, Q, K, V), traced(function, Q, K, V)):
            np.testing.assert_allclose(got[0], expected, rtol=1e-12)


def convolved(x: Any, w: Any, stride: int, padding: tuple[int, int], dilation: int, groups: int) -> Any:
    """A convolution in one dimension, by its definition."""
    x = np.pad(x, ((0, 0), (0, 0), padding))
    reach = (w.shape[2] - 1) * dilation + 1
    out = np.zeros((x.shape[0], w.shape[0], (x.shape[2] - reach) // stride + 1))
    own, made = x.shape[1] // groups, w.shape[0] // groups
    for o in range(w.shape[0]):
        part = x[:, o // made * own : (o // made + 1) * own]
        for i in range(out.shape[2]):
            window = part[:, :, i * stride : i * stride + reach : dilation]
            out[:, o, i] = (window * w[o]).sum((1, 2))
    return out


@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, (0, 0), 1, 1), (2, (1, 2), 1, 2), (3, (2, 2), 2, 4)])
def test_convolution(stride: int, padding: tuple[int, int], dilation: int, groups: int) -> None:
    x, w = (RNG.integers(-4, 5, shape).astype(np.float64) for shape in ((2, 4, 9), (8, 4 // groups, 3)))
    options = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    agree(lambda x, w: ops.conv(x, w, **options), lambda x, w: convolved(x, w, stride, padding, dilation, groups), x, w)


def test_same_padding_keeps_sizes() -> None:
    for size, stride in ((7, 1), (7, 2), (8, 3)):
        x, w = np.ones((1, 1, size, size)), np.ones((1, 1, 3, 2))
        (got,) = at_once(lambda x, w, s=stride: ops.conv(x, w, strides=s, padding="same"), x, w)
        assert got.shape[2:] == (-(-size // stride),) * 2


def test_pooling() -> None:
    x = RNG.integers(-9, 9, (2, 3, 4, 6)).astype(np.float32)
    blocks = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 2, 3, 4)
    agree(lambda x: ops.max_pool(x, 2), lambda x: blocks.max(-1), x)
    agree(lambda x: ops.min_pool(x, 2), lambda x: blocks.min(-1), x)
    agree(lambda x: ops.avg_pool(x, 2), lambda x: blocks.mean(-1), x)
    (got,) = at_once(lambda x: ops.avg_pool(x, 3, strides=1, padding=1), np.ones((1, 1, 4, 4)))
    assert np.array_equal(got, np.ones((1, 1, 4, 4)))
    (got,) = at_once(lambda x: ops.avg_pool(x, 3, strides=1, padding=1, count_padding=True), np.ones((1, 1, 2, 2)))
    assert np.allclose(got, 4 / 9)


def test_what_is_refused() -> None:
    x = np.ones((1, 2, 5))
    for wrong in (
        lambda: ops.conv(x, np.ones((2, 2, 2, 2))),
        lambda: ops.conv(x, np.ones((2, 3, 2))),
        lambda: ops.conv(x, np.ones((2, 2, 2)), padding="full"),
        lambda: ops.max_pool(np.ones((2, 2)), 2),
        lambda: ops.max_pool(x, 0),
        lambda: ops.gelu(x, approximate="often"),
        lambda: ops.attention(x, x[0], x),
        lambda: ops.layer_norm(x, np.ones((2, 1, 1, 5))),
        lambda: ops.random.uniform(np.ones(2), (3,)),
        lambda: ops.random.randint(ops.random.key(0), 3, 3),
        lambda: ops.random.dropout(ops.random.key(0), x, 1.5),
    ):
        with pytest.raises((UsageError, UnsupportedError), match=r"test_neural\.py"):
            wrong()


# ---- random numbers -------------------------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda k: ops.random.uniform(k, (4000,), -1, 3),
    "uniform f64": lambda k: ops.random.uniform(k, (4000,), dtype="float64"),
    "normal": lambda k: ops.random.normal(k, (4000,)),
    "bernoulli": lambda k: ops.random.bernoulli(k, 0.3, (4000,)),
    "randint": lambda k: ops.random.randint(k, -2, 5, (4000,)),
    "bits": lambda k: ops.random.bits(k, (4000,)),
    "categorical": lambda k: ops.random.categorical(k, ops.broadcast_to(np.log([0.1, 0.2, 0.7]), (4000, 3))),
    "dropout": lambda k: ops.random.dropout(k, np.ones(4000, np.float32), 0.25),
}
MEANS = {"uniform": 1, "uniform f64": 0.5, "normal": 0, "bernoulli": 0.3, "randint": 1, "bits": 2**31,
         "categorical": 1.6, "dropout": 1}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers(name: str) -> None:
    """The same at once and traced, the same for the same key, others for others, and of the right mean."""
    key = ops.random.key(7)
    first, other = ops.random.split(key)
    (a,), (b,), (c,) = (at_once(DRAWS[name], k) for k in (first, first, other))
    (d,) = traced(DRAWS[name], first)
    assert np.array_equal(a, b) and np.array_equal(a, np.asarray(d)) and not np.array_equal(a, c)
    a = a.astype(np.float64)
    assert abs(a.mean() - MEANS[name]) < 4 * a.std() / np.sqrt(a.size)


def test_random_numbers_stay_in_bounds() -> None:
    (a,) = at_once(DRAWS["uniform"], ops.random.key(1))
    (b,) = at_once(DRAWS["randint"], ops.random.key(1))
    assert a.min() >= -1 and a.max() < 3 and sorted(set(b)) == [-2, -1, 0, 1, 2, 3, 4]
