"""Sparse arrays: products, conversions, gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse

from .agreement import agree, together

M = np.array([[0, 2, 0, 1], [3, 0, 0, 0], [0, 0, 0, 4]], np.float32)
X = np.arange(8, dtype=np.float32).reshape(4, 2)


def kept(m: Any) -> Any:
    return sparse.BCOO.fromdense(m, nse=4)


def test_block_coordinate_arrays() -> None:
    functions = {
        "product": lambda m, x: kept(m) @ x,
        "dense again": lambda m, x: kept(m).todense(),
        "transposed": lambda m, x: kept(m).T @ m,
        "sorted": lambda m, x: kept(m).T.sort_indices().indices,
        "both": lambda m, x: (kept(m) @ kept(x[:, :1] * m[:1].T)).todense(),
        "gradient": jax.grad(lambda m, x: jnp.sum((kept(m) @ x) ** 2), argnums=(0, 1)),
    }
    agree(together(functions), M, X)


def test_row_arrays() -> None:
    functions = {
        "product": lambda m, x: sparse.BCSR.fromdense(m, nse=4) @ x,
        "dense again": lambda m, x: sparse.BCSR.fromdense(m, nse=4).todense(),
        "csr": lambda m, x: sparse.CSR.fromdense(m, nse=4) @ x,
        "coo": lambda m, x: sparse.COO.fromdense(m, nse=4) @ x,
    }
    agree(together(functions), M, X)
