"""dot_general: types, precisions, algorithms, ragged groups, scales."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from .agreement import agree, together

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.uniform(-1, 1, (4, 6)).astype(np.float32), RANDOM.uniform(-1, 1, (6, 5)).astype(np.float32)


def test_precisions_and_algorithms() -> None:
    names = ("default", "highest", "F32_F32_F32", "F16_F16_F16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "F64_F64_F64")
    functions = {name: lambda x, y, name=name: lax.dot(x, y, precision=name) for name in names}
    with jax.enable_x64(True):
        agree(together(functions), X, Y)


@pytest.mark.parametrize("left", [jnp.float8_e4m3fn, jnp.float16, np.int8])
def test_operands_of_two_types(left: type) -> None:
    right = {np.int8: np.int16, jnp.float16: jnp.bfloat16}.get(left, jnp.float8_e5m2)
    wanted = jnp.int32 if left is np.int8 else jnp.float32
    x, y = (v * 10 if left is np.int8 else v for v in (X, Y))
    agree(lambda x, y: lax.dot(x, y, preferred_element_type=wanted), x.astype(left), y.astype(right))


def test_ragged_groups() -> None:
    sizes, groups = np.array([1, 0, 2], np.int32), RANDOM.uniform(-1, 1, (3, 6, 5)).astype(np.float32)
    rows = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), lhs_ragged_dimensions=[0], rhs_group_dimensions=[])
    functions = {
        "rows": lambda x, y, sizes: lax.ragged_dot(x, y, sizes),
        "gradient": jax.grad(lambda x, y, sizes: (lax.ragged_dot(x, y, sizes) ** 2).sum(), argnums=(0, 1)),
        "contracted": lambda x, y, sizes: lax.ragged_dot_general(x, x, sizes, rows),
    }
    agree(together(functions), X, groups, sizes)


def test_scales_of_blocks() -> None:
    x, y = X.astype(jnp.float8_e4m3fn), Y.T.astype(jnp.float8_e4m3fn)
    scales = [np.full((n, 2), [0.5, 2.0]).astype(jnp.float8_e8m0fnu) for n in (4, 5)]

    def scaled(x: Any, y: Any, a: Any, b: Any) -> Any:
        return lax.scaled_dot(x, y, lhs_scale=a, rhs_scale=b, dimension_numbers=(((1,), (1,)), ((), ())))

    agree(scaled, x, y, *scales)
