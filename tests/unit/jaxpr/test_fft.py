"""Fourier transforms of one to three dimensions, of all types, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gcomp.errors import UnsupportedError
from gcomp.frontends.jaxpr import import_jax

from .agreement import Group, agree, together

RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((2, 3, 4, 5))
COMPLEX = REAL + 1j * RNG.standard_normal(REAL.shape)

TRANSFORMS: Group = {
    "fft": jnp.fft.fft,
    "ifft": jnp.fft.ifft,
    "fft2": jnp.fft.fft2,
    "ifft2": jnp.fft.ifft2,
    "fftn": lambda x: jnp.fft.fftn(x, axes=(1, 2, 3)),
    "longer": lambda x: jnp.fft.fft(x, n=8),
    "shorter": lambda x: jnp.fft.ifft(x, n=3),
    "other axis": lambda x: jnp.fft.fft(x, axis=1, norm="ortho"),
    "shifted": lambda x: jnp.fft.fftshift(jnp.fft.fft(x)),
    "batched": jax.vmap(jnp.fft.fft2),
    "irfft": jnp.fft.irfft,
    "irfft odd": lambda x: jnp.fft.irfft(x, n=7),
    "irfftn": lambda x: jnp.fft.irfftn(x, axes=(1, 2, 3)),
}
OF_REALS: Group = {
    "rfft": jnp.fft.rfft,
    "rfft2": jnp.fft.rfft2,
    "rfftn": lambda x: jnp.fft.rfftn(x, axes=(1, 2, 3)),
    "hfft": jnp.fft.hfft,
    "gradient": jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()),
    "there and back": lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x), s=x.shape[-2:]),
}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_transforms_of_complex_numbers(dtype: type) -> None:
    with jax.enable_x64(True):
        agree(together(TRANSFORMS), COMPLEX.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_of_real_numbers(dtype: type) -> None:
    with jax.enable_x64(True):
        agree(together(OF_REALS), REAL.astype(dtype))


def test_an_empty_batch() -> None:
    agree(jnp.fft.fft, np.zeros((0, 4), np.complex64))


def test_more_than_three_dimensions_are_refused_with_a_way_out() -> None:
    with pytest.raises(UnsupportedError, match="more than three") as refusal:
        import_jax(lambda x: jax.lax.fft(x, "fft", x.shape), COMPLEX.astype(np.complex64))
    assert "one after the other" in str(refusal.value)
