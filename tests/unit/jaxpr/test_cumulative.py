"""Cumulative folds: both directions, all axes, complex numbers, symbolic sizes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import gcomp
from gcomp.frontends.jaxpr import import_jax

from .agreement import agree, together

FOLDS = (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin)


def both_ways(x: Any, axis: int) -> Any:
    folds = FOLDS if jnp.issubdtype(x.dtype, jnp.integer) or jnp.iscomplexobj(x) else (*FOLDS, lax.cumlogsumexp)
    return [fold(x, axis=axis, reverse=reverse) for fold in folds for reverse in (False, True)]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
def test_both_ways(dtype: type) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (3, 2, 5)).astype(dtype)
    agree(together({str(axis): lambda x, axis=axis: both_ways(x, axis) for axis in (0, 2)}), x)


def test_complex_numbers_are_compared_by_both_parts() -> None:
    x = np.array([1 + 2j, 1 - 5j, 1 + 3j, 0 + 9j, complex(np.nan, 1), 2 + 0j, 2 - 1j], np.complex64)
    functions = {
        "folds": lambda x: [lax.cummax(x), lax.cummin(x)],
        "both": lambda x: [lax.max(x, x[::-1]), lax.min(x, x[::-1])],
        "reductions": lambda x: [lax.reduce_max(x[:4], (0,)), lax.reduce_min(x[:4], (0,))],
        "windows": lambda x: lax.reduce_window(x[:4], -jnp.inf + 0j, lax.max, (2,), (1,), "SAME"),
    }
    agree(together(functions), x, ulps=0)


def test_long_axes_and_none() -> None:
    x = np.random.default_rng(0).uniform(0, 1, 5000).astype(np.float32)
    agree(together({"long": lambda x: lax.cumsum(x), "none": lambda x: lax.cumsum(x[:0])}), x)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_symbolic_sizes(size: int, model: Any) -> None:
    x = np.random.default_rng(size).uniform(-1, 1, (2, size)).astype(np.float32)
    for found, wanted in zip(model(x), both_ways(jnp.asarray(x), 1), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def model() -> Any:
    (n,) = jax.export.symbolic_shape("n")
    return gcomp.compile(import_jax(lambda x: both_ways(x, 1), jax.ShapeDtypeStruct((2, n), jnp.float32)))
