"""Convolutions: groups, dilations, padding, layouts, element types, gradients."""

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

RANDOM = np.random.default_rng(0)
X, KERNEL = (RANDOM.integers(-4, 5, shape).astype(np.float32) for shape in ((2, 4, 9, 8), (6, 4, 3, 2)))


def convolve(x: Any, kernel: Any, **keywords: Any) -> Any:
    settings: dict[str, Any] = {"window_strides": (1, 1), "padding": "SAME", **keywords}
    return lax.conv_general_dilated(x, kernel, **settings)


FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "strided": {"window_strides": (2, 3), "padding": "VALID"},
    "dilated": {"lhs_dilation": (2, 1), "rhs_dilation": (1, 3), "padding": [(1, 2), (0, 3)]},
    "cut": {"padding": [(-1, 2), (1, -2)]},
}


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32, jnp.bfloat16])
def test_windows(dtype: Any) -> None:
    functions = {name: lambda x, k, form=form: convolve(x, k, **form) for name, form in FORMS.items()}
    agree(together(functions), X.astype(dtype), KERNEL.astype(dtype))


def test_groups_and_layouts() -> None:
    functions = {
        "features": lambda x, k: convolve(x, k[:, :2], feature_group_count=2),
        "depthwise": lambda x, k: convolve(x, k[:4, :1], feature_group_count=4),
        "batches": lambda x, k: convolve(x, k, batch_group_count=2),
        "channels last": lambda x, k: convolve(
            x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        "transposed": lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")),
        "one": lambda x, k: convolve(x[..., 0], k[..., 0], window_strides=(2,)),
        "exact": lambda x, k: convolve(x, k, precision="highest"),
    }
    agree(together(functions), X, KERNEL)


def test_sums_in_a_wider_type() -> None:
    x, k = np.full((1, 4, 9, 8), 100, np.int8), np.full((6, 4, 3, 2), 100, np.int8)
    agree(lambda x, k: convolve(x, k, preferred_element_type=jnp.int32), x, k)


def test_gradients() -> None:
    def total(x: Any, k: Any) -> Any:
        return sum((convolve(x, k, **FORMS[name]) ** 2).sum() for name in ("strided", "dilated"))

    agree(jax.grad(total, argnums=(0, 1)), X, KERNEL)


def test_batches_of_kernels() -> None:
    agree(jax.vmap(lambda x, k: convolve(x[None], k[None, :, :, :])), X[:2], np.stack([KERNEL[0], KERNEL[1]]))


def test_symbolic_sizes() -> None:
    b, n = jax.export.symbolic_shape("b, n")
    program = import_jax(
        lambda x, k: convolve(x, k, window_strides=(2, 1)), jax.ShapeDtypeStruct((b, 4, n, 8), jnp.float32), KERNEL
    )
    model = gcomp.compile(program, dims={"n": (3, 64)})
    for size in (3, 8, 9):
        x = X[:, :, :size]
        np.testing.assert_allclose(model(x, KERNEL), convolve(x, KERNEL, window_strides=(2, 1)), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_images_of_any_size(dtype: Any) -> None:
    """JAX knows that sizes are at least 1, and writes them without `max(0, ...)`."""

    def strided(x: Any, kernel: Any) -> Any:
        return convolve(x, kernel, padding=[(0, 0), (0, 0)], lhs_dilation=(2, 1))

    scope = jax.export.SymbolicScope()
    x = jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 4, h, 8", scope=scope), dtype)
    model = gcomp.compile(strided, x, jax.ShapeDtypeStruct((6, 4, 1, 2), dtype))
    for n, h in ((2, 9), (1, 1), (3, 4)):
        image, kernel = X[:1, :, :h].repeat(n, 0).astype(dtype), KERNEL[:, :, :1].astype(dtype)
        np.testing.assert_allclose(np.asarray(model(image, kernel)), strided(image, kernel), rtol=1e-5)
