"""Factorizations, solves and transforms: their defining equations, on exact small matrices and random ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gcomp.dtypes import DTYPES
from gcomp.reference.numpy.lapack import lapack
from gcomp.reference.numpy.linalg import cholesky, fft, triangular_solve

from .samples import same_bits

KINDS = ["f32", "f64", "complex<f32>", "complex<f64>", "bf16"]


def random(shape: tuple[int, ...], text: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    if text.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    return values.astype(DTYPES[text])


@pytest.mark.parametrize("uplo", "LU")
def test_lapack_leaves_the_other_triangle_as_it_was(uplo: str) -> None:
    a = np.array([[4, 8], [6, 13]] if uplo == "L" else [[4, 8], [6, 17]], np.float32)
    types = [(a.shape, a.dtype), ((), np.dtype(np.int32))]
    factor, info = lapack(a, types=types, target="lapack_spotrf_ffi", uplo=ord(uplo))
    assert info == 0 and factor.tolist() == ([[2, 8], [3, 2]] if uplo == "L" else [[2, 4], [6, 1]])


def test_reflectors_are_as_many_as_their_factors() -> None:
    """Further columns of the matrix that holds them are not read: torch allows any."""
    wide, c = random((3, 5), "f64"), random((3, 2), "f64", 1)
    config = {"target": "lapack_dormqr_ffi", "left": True, "transpose": False}
    types, taus = [(c.shape, c.dtype)], np.array([0.5, 0.25, 0.75])
    (found,), (expected,) = (lapack(a, taus, c, types=types, **config) for a in (wide, wide[:, :3]))
    assert np.array_equal(found, expected) and found.any()


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_of_an_exact_factor(lower: bool) -> None:
    factor = np.array([[2, 0, 0], [-1, 3, 0], [4, 1, 1]], np.float32)
    a = factor @ factor.T
    noise = np.triu(np.full((3, 3), np.nan, np.float32), 1)
    readable = a + (noise if lower else noise.T)
    assert same_bits(cholesky(readable, lower=lower), factor if lower else factor.T.copy())


@pytest.mark.parametrize("text", KINDS[:4])
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reproduces_the_matrix(lower: bool, text: str) -> None:
    x = random((2, 5, 5), text)
    a = (x @ np.conj(np.swapaxes(x, -1, -2)) + 5 * np.eye(5)).astype(x.dtype)
    f = cholesky(a, lower=lower)
    back = f @ np.conj(np.swapaxes(f, -1, -2)) if lower else np.conj(np.swapaxes(f, -1, -2)) @ f
    assert f.dtype == a.dtype
    assert np.abs(back - a).max() <= 20 * np.finfo(a.dtype).eps * np.abs(a).max()
    assert not np.any(np.triu(f, 1) if lower else np.tril(f, -1))


def test_cholesky_of_what_has_none_is_nan() -> None:
    good, bad = np.eye(2, dtype=np.float32), np.array([[1, 2], [2, 1]], np.float32)
    f = cholesky(np.stack([good, bad, np.zeros((2, 2), np.float32)]), lower=True)
    assert same_bits(f[0], good)
    for failed in f[1:]:
        assert np.isnan(failed[np.tril_indices(2)]).all() and failed[0, 1] == 0
    assert cholesky(np.zeros((3, 0, 0), np.float32), lower=True).shape == (3, 0, 0)


@pytest.mark.parametrize("text", KINDS[:4])
def test_triangular_solve_solves(text: str) -> None:
    square = random((2, 4, 4), text) / 8
    for left, lower, unit, op in itertools.product(
        [True, False], [True, False], [True, False], ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]
    ):
        triangle = np.tril(square, -1) if lower else np.triu(square, 1)
        a = triangle + np.eye(4) * (1 if unit else 2)
        # What must not be read is NaN.
        hidden = np.where(np.tri(4, k=-1, dtype=bool).T if lower else np.tri(4, k=-1, dtype=bool), np.nan, a)
        if unit:
            hidden = np.where(np.eye(4, dtype=bool), np.nan, hidden)
        b = random((2, 4, 3) if left else (2, 3, 4), text, seed=1)
        x = triangular_solve(hidden.astype(b.dtype), b, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=op)
        matrix = a if op == "NO_TRANSPOSE" else np.swapaxes(a if op == "TRANSPOSE" else np.conj(a), -1, -2)
        matrix = matrix.astype(b.dtype)
        back = matrix @ x if left else x @ matrix
        assert x.dtype == b.dtype
        assert np.abs(back - b).max() <= 50 * np.finfo(b.dtype).eps * np.abs(b).max(), (left, lower, unit, op)


def test_triangular_solve_divides_by_zero_as_ieee() -> None:
    a, b = np.zeros((1, 1), np.float32), np.array([[1.0, -1.0, 0.0]], np.float32)
    x = triangular_solve(a, b, left_side=True, lower=True, unit_diagonal=False, transpose_a="NO_TRANSPOSE")
    assert x[0, :2].tolist() == [np.inf, -np.inf] and np.isnan(x[0, 2])


def dft(x: np.ndarray, axis: int, sign: int) -> np.ndarray:
    n = x.shape[axis]
    k = np.arange(n)
    return np.moveaxis(np.moveaxis(x, axis, -1) @ np.exp(sign * 2j * np.pi * np.outer(k, k) / n), -1, axis)


@pytest.mark.parametrize("lengths", [(1,), (2,), (5,), (8,), (3, 4), (2, 3, 5)])
def test_fft_is_the_discrete_fourier_transform(lengths: tuple[int, ...]) -> None:
    x = random((2, *lengths), "complex<f64>")
    forward, inverse = x, x
    for axis in range(1, x.ndim):
        forward, inverse = dft(forward, axis, -1), dft(inverse, axis, 1) / x.shape[axis]
    assert np.abs(fft(x, fft_type="FFT", fft_length=lengths) - forward).max() < 1e-12
    assert np.abs(fft(x, fft_type="IFFT", fft_length=lengths) - inverse).max() < 1e-12
    real = random((2, *lengths), "f64")
    half = fft(real, fft_type="RFFT", fft_length=lengths)
    assert half.shape == (2, *lengths[:-1], lengths[-1] // 2 + 1)
    full = fft(real.astype(np.complex128), fft_type="FFT", fft_length=lengths)
    assert np.abs(half - full[..., : half.shape[-1]]).max() < 1e-12
    assert np.abs(fft(half, fft_type="IRFFT", fft_length=lengths) - real).max() < 1e-13


def test_fft_types_and_empty_operands() -> None:
    assert fft(np.ones((2, 4), np.float32), fft_type="RFFT", fft_length=[4]).dtype == np.complex64
    assert fft(np.ones((2, 3), np.complex64), fft_type="IRFFT", fft_length=[4]).dtype == np.float32
    assert fft(np.ones((0, 4), np.complex64), fft_type="FFT", fft_length=[4]).shape == (0, 4)
    none = np.ones((2, 0), np.float32)
    assert fft(none, fft_type="RFFT", fft_length=[0]).shape == (2, 0)
    assert np.array_equal(fft(none, fft_type="RFFT", fft_length=[0], shape=(2, 1)), np.zeros((2, 1)))
