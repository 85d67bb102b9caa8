"""Elementwise primitives where XLA, or JAX's definition, has an edge."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from .agreement import agree, together


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arcus_tangents_of_many_elements(dtype: type) -> None:
    x = np.linspace(-4, 4, 400).astype(dtype)
    functions = {"atan": lax.atan, "by a constant": lambda x: lax.atan2(x, jnp.ones_like(x)), "angle": jnp.angle}
    with jax.enable_x64(True):
        agree(together(functions), x)


def test_parts_of_complex_numbers_broadcast() -> None:
    x = np.ones((3, 2), np.float32)
    agree(lambda x: lax.complex(x, x[:, :1] * 2), x)
