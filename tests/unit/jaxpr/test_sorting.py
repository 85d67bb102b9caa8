"""Sorting and the greatest elements: the order of NaNs, zeros and complex numbers, ties, several keys."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from .agreement import agree, together

X = np.array([3, np.nan, -0.0, 0.0, -np.inf, 3, np.inf, 0.0, -np.nan, -1], np.float32)


def signs(x: Any) -> Any:
    """What tells -0 from 0."""
    return jnp.signbit(x) & ~jnp.isnan(x)


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int8, np.uint16, np.bool_])
def test_stable_sorts(dtype: Any) -> None:
    x = (np.nan_to_num(X, posinf=9, neginf=-9) if np.dtype(dtype).kind in "iub" else X).astype(dtype)
    functions = {
        "sort": jnp.sort,
        "argsort": jnp.argsort,
        "descending": lambda x: jnp.argsort(x, descending=True),
        "with": lambda x: lax.sort([x, jnp.arange(10)], num_keys=1),
        "zeros keep their places": lambda x: signs(lax.sort(x)) if jnp.issubdtype(x.dtype, jnp.floating) else 0,
        "top": lambda x: lax.top_k(x, 7) if x.dtype != jnp.bool_ else lax.top_k(x, 3),
    }
    agree(together(functions), x, ulps=0)


def test_complex_numbers_are_in_lexicographic_order() -> None:
    parts = np.array([1, np.nan, 0, -0.0, np.inf], np.float32)
    x = np.stack(np.meshgrid(parts, parts, indexing="ij"), -1).view(np.complex64).reshape(-1)
    agree(lambda x: lax.sort([x, jnp.arange(25)], num_keys=1)[1], x)


def test_several_keys_break_ties_in_order() -> None:
    a, b = np.array([1, 0, 1, 0, 1, 1], np.int32), np.array([2, 5, -0.0, np.nan, 0.0, 2], np.float32)
    functions = {
        str(keys): lambda a, b, keys=keys: lax.sort([a, b, jnp.arange(6)], num_keys=keys) for keys in (1, 2, 3)
    }
    agree(together(functions), a, b, ulps=0)


def test_along_any_axis() -> None:
    x = np.random.default_rng(0).integers(0, 9, (3, 4, 5)).astype(np.float32)
    functions = {str(axis): lambda x, axis=axis: lax.top_k(x, 2, axis=axis) for axis in range(3)}
    functions |= {f"sort {axis}": lambda x, axis=axis: jnp.argsort(x, axis=axis) for axis in range(3)}
    agree(together(functions), x, ulps=0)


def test_approximate_ones_are_the_true_ones() -> None:
    x = np.random.default_rng(0).permutation(600).reshape(2, 300).astype(np.float32)
    functions = {
        "max": lambda x: lax.approx_max_k(x, 5),
        "min": lambda x: lax.approx_min_k(x, 5, reduction_dimension=0) if x.shape[0] > 5 else lax.approx_min_k(x, 5),
        "gradient": jax.grad(lambda x: lax.approx_max_k(x, 5)[0].sum()),
    }
    agree(together(functions), x, ulps=0)


def test_gradients_go_back_to_their_places() -> None:
    agree(jax.grad(lambda x: (jnp.sort(x) * jnp.arange(10.0)).sum()), np.arange(10.0, dtype=np.float32)[::-1])
