"""Fourier transforms of every length, through the target, beside NumPy's in double."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gcomp
from tests.unit.onnx.graphs import model

LENGTHS = (1, 2, 3, 8, 17)


def dft(x: np.ndarray[Any, Any], attributes: str = "") -> np.ndarray[Any, Any]:
    """DFT-17 along axis 1, with symbolic sizes; complex numbers in the last dim, in and out."""
    parts = x.shape[-1]
    text = f"(float[batch, n, {parts}] x) => (float[batch, m, 2] y) {{ y = DFT<axis = 1{attributes}>(x) }}"
    result = gcomp.compile(model(text, opset=19))(x)[0]
    return result[..., 0] + 1j * result[..., 1]


@pytest.mark.parametrize("n", LENGTHS)
def test_a_real_signal(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((2, n, 1)).astype(np.float32)
    np.testing.assert_allclose(dft(x), np.fft.fft(x[..., 0].astype(np.float64)), atol=2e-6 * n)


@pytest.mark.parametrize("n", LENGTHS)
def test_half_of_a_real_signal(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((2, n, 1)).astype(np.float32)
    np.testing.assert_allclose(dft(x, ", onesided = 1"), np.fft.rfft(x[..., 0].astype(np.float64)), atol=2e-6 * n)


@pytest.mark.parametrize("n", LENGTHS)
def test_a_complex_signal_and_back(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((2, n, 2)).astype(np.float32)
    z = x[..., 0].astype(np.float64) + 1j * x[..., 1]
    np.testing.assert_allclose(dft(x), np.fft.fft(z), atol=2e-6 * n)
    np.testing.assert_allclose(dft(x, ", inverse = 1"), np.fft.ifft(z), atol=2e-6)


@pytest.mark.parametrize("n", LENGTHS)
def test_a_real_signal_taken_for_a_spectrum(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((2, n, 1)).astype(np.float32)
    np.testing.assert_allclose(dft(x, ", inverse = 1"), np.fft.ifft(x[..., 0].astype(np.float64)), atol=2e-6)
