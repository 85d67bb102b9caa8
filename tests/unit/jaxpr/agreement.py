"""Functions through `gcomp.jit` and `jax.jit`: the same results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gcomp
from gcomp.options import DEFAULT_TARGET

Function = Callable[..., Any]
Group = Mapping[str, Function]


def together(functions: Group) -> Function:
    """One function of several of the same arguments, by name: compiled once, it is checked faster than they are."""
    return lambda *args: {name: function(*args) for name, function in functions.items()}


def agree(function: Function, *args: Any, ulps: float = 8, target: str = DEFAULT_TARGET) -> None:
    """gcomp gives what JAX gives: integers exactly, floats within `ulps` of the largest finite number beside them."""
    got, wanted = gcomp.jit(function, target=target)(*args), jax.jit(function)(*args)
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for (path, x), y in zip(jax.tree.leaves_with_path(got), jax.tree.leaves(wanted), strict=True):
        where = jax.tree_util.keystr(path)
        assert (x.dtype, x.shape) == (y.dtype, y.shape), where
        if jnp.issubdtype(y.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        _near(np.asarray(x), np.asarray(y), ulps, where)


def _near(x: np.ndarray, y: np.ndarray, ulps: float, where: str) -> None:
    if not jnp.issubdtype(y.dtype, jnp.inexact):
        np.testing.assert_array_equal(x, y, err_msg=where)
        return
    allowed = ulps * float(jnp.finfo(y.dtype).eps)
    wide = np.complex128 if np.iscomplexobj(y) else np.float64
    x, y = x.astype(wide), y.astype(wide)
    finite = np.where(np.isfinite(y), np.abs(y), 0)
    np.testing.assert_allclose(x, y, rtol=allowed, atol=allowed * float(finite.max(initial=0)), err_msg=where)
