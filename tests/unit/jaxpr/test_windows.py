"""Windows: pooling, its gradients of any order, folds by functions of the user's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import gcomp
from gcomp.dims import evaluate, parse

from .agreement import agree, together

X = np.random.default_rng(0).integers(-9, 9, (1, 7, 8, 2)).astype(np.float32)
WINDOW, STRIDES = (1, 3, 2, 1), (1, 2, 1, 1)


def pool(x: Any, fold: Any, start: float, padding: Any = "SAME", **keywords: Any) -> Any:
    return lax.reduce_window(x, np.asarray(start, x.dtype), fold, WINDOW, STRIDES, padding, **keywords)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.float16])
def test_pools(dtype: type) -> None:
    least, greatest = (-np.inf, np.inf) if np.dtype(dtype).kind == "f" else (-(2**31), 2**31 - 1)
    negative = [(0, 0), (-1, 2), (3, -2), (0, 0)]
    functions = {
        "max": lambda x: pool(x, lax.max, least),
        "min": lambda x: pool(x, lax.min, greatest),
        "sum": lambda x: pool(x, lax.add, 0, "VALID"),
        "dilated": lambda x: pool(x, lax.add, 0, base_dilation=(1, 2, 3, 1), window_dilation=(1, 2, 2, 1)),
        "cut": lambda x: pool(x, lax.max, least, negative),
        "start counts": lambda x: pool(x, lax.max, 2),
        "function": lambda x: pool(x, lambda a, b: a + b + a * b, 0),
    }
    agree(together(functions), X.astype(dtype))


def test_gradients_of_pools() -> None:
    def total(x: Any, fold: Any, start: float, padding: Any) -> Any:
        return (pool(x, fold, start, padding) ** 2).sum()

    functions = {
        f"{name} {padding}": jax.grad(lambda x, f=fold, s=start, p=padding: total(x, f, s, p))
        for name, fold, start in (("max", lax.max, -np.inf), ("min", lax.min, np.inf), ("sum", lax.add, 0))
        for padding in ("SAME", "VALID")
    }
    agree(together(functions), X)


@pytest.mark.parametrize(
    ("window", "stride", "padding", "size"),
    [
        (5, 3, "VALID", "2*n"),
        (3, 2, "VALID", "n"),
        (5, 2, ((0, 0), (1, 1)), "n"),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_gradients_of_pools_of_unknown_sizes(window: int, stride: int, padding: Any, size: str, again: bool) -> None:
    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (1, window), (1, stride), padding)

    def total(x: Any) -> Any:
        return (pooled(pooled(x) if again else x) ** 2).sum()

    sizes = jax.export.symbolic_shape(f"b, {size}", constraints=["n >= 5"])
    model = gcomp.compile(jax.grad(total), jax.ShapeDtypeStruct(sizes, np.float32))
    for n in (5, 6, 7, 12):
        x = np.random.default_rng(n).standard_normal((2, evaluate(parse(size), {"n": n}))).astype(np.float32)
        np.testing.assert_allclose(model(x), jax.grad(total)(x), rtol=1e-5)


def test_gradients_of_pools_of_a_part() -> None:
    """JAX refuses to run these, whose padding takes elements away."""

    def total(x: Any, padding: Any) -> Any:
        return (lax.reduce_window(x, -np.inf, lax.max, (1, 3), (1, 2), padding) ** 2).sum()

    x = np.random.default_rng(0).standard_normal((2, 9)).astype(np.float32)
    found = gcomp.jit(jax.grad(lambda x: total(x, ((0, 0), (-1, -2)))))(x)
    np.testing.assert_array_equal(found, jax.grad(lambda x: total(x[:, 1:-2], "VALID"))(x))


def test_second_derivatives_of_pools() -> None:
    def slope(x: Any) -> Any:
        return jax.grad(lambda x: (pool(x, lax.max, -np.inf) ** 3).sum())(x)

    agree(lambda x: jax.jvp(slope, (x,), (x * x,))[1], X)


def test_arrays_are_folded_together() -> None:
    def largest(x: Any) -> Any:
        def better(a: Any, b: Any) -> Any:
            own = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
            return tuple(jnp.where(own, p, q) for p, q in zip(a, b, strict=True))

        places = jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape)
        return lax.reduce_window((x, places), (-jnp.inf, jnp.int32(2**31 - 1)), better, WINDOW, STRIDES, "VALID")

    agree(largest, X, ulps=0)
